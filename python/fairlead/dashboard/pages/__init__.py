"""The pages of the console, one module for each subject; a new one is found by itself."""
