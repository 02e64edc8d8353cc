"""The pages of the console, one module for each subject; a new module is found automatically."""
