"""Contents: bytes of any length under a name, kept apart from the rows that speak of them.

* `blob.py`: the face of every store of contents.
* `directory.py`: a folder, the data directory's or one that nodes share.
* `bucket.py`: signed requests to a bucket of an S3-compatible store; `bucket_blobs.py`: contents in it.
* `location.py`: the store that this process has; `bounded_calls.py`: calls of one that may not answer.
"""
