"""Artefacts: the files that rows name, kept where every worker can get them, known by what they hold.

By default they lie in place, in the data folder; a row says of each file what it held when its job ended, so that damage is
noticed. With the setting `artefacts` (a folder, or s3://bucket/prefix) they are kept there as well, each under the SHA-256 of
its bytes: a worker fetches a project before its job and publishes it at every checkpoint and at the end, the studio does so
before a job is queued and whenever something changes. Workers then need no folder in common.
"""

from engine.store.sharing.blob_store import BlobStore, open_blobs
from engine.store.sharing.sync import before_queueing, share_of, working
from engine.store.sharing.workspace_sync import WorkspaceSync
