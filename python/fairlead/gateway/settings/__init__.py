"""The routes of settings that an operator may change while fairlead runs
(`fairlead.store.operator_settings`).
"""
