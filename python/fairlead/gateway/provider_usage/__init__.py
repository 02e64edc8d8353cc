"""Providers' own usage routes: which figures they tell, when they are asked."""
