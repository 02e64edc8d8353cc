"""How the gateway's own pages look: colours, the frame of a document, and the headers that guard it.

Sign-in, the board and the console share it.
"""
