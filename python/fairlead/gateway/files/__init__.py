"""Files that callers store at the gateway: inputs and outputs of batches."""
