"""Getting pages over HTTP: `fetcher.py` (one GET, under caps), `transport.py` (connections behind the egress guard),
`politeness.py` (robots.txt and the pace of requests to a host), `robots.py` (reading robots.txt in linear time).
"""
