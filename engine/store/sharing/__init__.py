"""Artefacts: the files of workspaces, identified by their content and accessible to every worker.

By default they stay in the data folder, and a row records the hash of each file when its job ends, so that damage is
detected. With the setting `artefacts` (a folder, or s3://bucket/prefix) they are also stored there, each under the SHA-256 of
its bytes. A worker then fetches a project before its job and publishes it regularly during the job and at the end; the studio
publishes it before a job is queued and whenever a file changes. Workers then need no shared folder.
"""

from engine.store.sharing.blob_store import BlobStore, open_blobs
from engine.store.sharing.sync import before_queueing, share_of, working
from engine.store.sharing.workspace_sync import WorkspaceSync
