"""Videos: begun at a provider that speaks Gemini's dialect, asked for until they are there, told of."""
