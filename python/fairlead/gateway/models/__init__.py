"""What an operator says of models: custom ones, overrides, and the catalogue of all."""
