"""The Model Context Protocol as a server speaks it: messages, revisions, tools, one endpoint.

Which tools there are and who may call is decided by whoever makes an endpoint of it.
"""
