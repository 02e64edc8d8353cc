"""Resilience: thresholds for failing providers, and the states of connections that outlive a
worker.
"""
