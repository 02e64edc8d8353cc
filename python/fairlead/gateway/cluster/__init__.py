"""The nodes of an instance: `report.py` (what each says of itself), `router.py` (all of them), `reseal_router.py`."""
