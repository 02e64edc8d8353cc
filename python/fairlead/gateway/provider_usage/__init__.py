"""What providers' own usage routes say: which figures they tell, when they are asked."""
