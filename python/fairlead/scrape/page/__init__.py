"""What a page holds: pure functions from HTML text to content, markdown, metadata, links, tables,
code and images. The same text gives the same result.
"""
