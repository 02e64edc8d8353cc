"""The authorization server: tool clients register, people approve them, tokens are issued and taken
back (OAuth 2.1 for public clients; RFC 6749, 7009, 7591, 7636, 8414, 8707, 9207, 9728).
"""
