"""The routes to what an operator may change while fairlead runs
(`fairlead.store.operator_settings`).
"""
