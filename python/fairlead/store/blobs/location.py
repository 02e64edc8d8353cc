"""The store of contents that this process has."""

from __future__ import annotations

from fairlead.settings.files import BucketLocation
from fairlead.store.blobs.blob import Blobs
from fairlead.store.blobs.directory import Directory
from fairlead.store.services import Services


def blobs_of(services: Services) -> Blobs:
    """The process's store of contents."""
    location = services.config.files_location
    if isinstance(location, BucketLocation):
        return _bucket_of(services, location)
    return services.singleton(Directory, lambda: Directory(location or services.data_dir))


async def close_blobs(services: Services) -> None:
    """Ends the connections of the store of contents."""
    if isinstance(services.config.files_location, BucketLocation):
        await blobs_of(services).close()


def _bucket_of(services: Services, location: BucketLocation) -> Blobs:
    # An HTTP client takes memory, which control has no use for without a bucket.
    from fairlead.store.blobs.bucket import Bucket  # noqa: PLC0415
    from fairlead.store.blobs.bucket_blobs import BucketBlobs  # noqa: PLC0415

    def open_() -> BucketBlobs:
        secret = services.config.files_secret_access_key
        secret_text = "" if secret is None else secret.get_secret_value()
        bucket = Bucket(location, services.config.files_access_key_id or "", secret_text)
        return BucketBlobs(bucket, services.data_dir)

    return services.singleton(BucketBlobs, open_)
