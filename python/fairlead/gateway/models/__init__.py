"""Models as the operator configures them: custom ones, overrides, and the catalogue of all."""
