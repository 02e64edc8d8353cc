"""Videos: begun at a provider in Gemini's dialect, followed until they are done, announced to
webhooks.
"""
