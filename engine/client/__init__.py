"""A small client of the studio's REST interface.

from engine.client import Client

with Client("http://127.0.0.1:7860", token="tmt_…") as studio:
    project = studio.create_project("Lu Xun", "en", "zh")
    studio.wait(studio.upload(project["id"], ["luxun.txt"]))
    studio.wait(studio.start_run(project["id"], budget="quick"), print)
    print(studio.translate(["The rain stopped."], project=project["id"]))
"""

from __future__ import annotations

from engine.client.client import Client, ClientError

__all__ = ["Client", "ClientError"]
