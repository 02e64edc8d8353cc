"""Web search with engines that an operator configured, tried in the order of their priority."""
