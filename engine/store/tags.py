"""Tags of plugins."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ForeignKey, String, delete, select
from sqlalchemy.orm import Mapped, mapped_column

from engine.store import tables

LONGEST = 40  # characters of a tag
MOST = 12  # tags of a plugin


class PluginTag(tables.Base):
    __tablename__ = "plugin_tag"

    plugin_id: Mapped[int] = mapped_column(ForeignKey("plugin.id", ondelete="CASCADE"), primary_key=True)
    tag: Mapped[str] = mapped_column(String(LONGEST), primary_key=True)


class Tags(tables.StorePart):
    """The tags of plugins."""

    def of(self, project_id: int) -> dict[int, list[str]]:
        """{plugin id: sorted tags} of the plugins of a project that have tags."""
        query = select(PluginTag.plugin_id, PluginTag.tag).join(tables.Plugin).order_by(PluginTag.tag)
        result: dict[int, list[str]] = {}
        with self._store.read() as session:
            for plugin, tag in session.execute(query.where(tables.Plugin.project_id == project_id)):
                result.setdefault(plugin, []).append(tag)
        return result

    def set(self, plugin_id: int, tags: Sequence[str]) -> list[str]:
        """Replace the tags of a plugin; returns them as stored. Raises InputError if there is no such plugin."""
        self._store.plugins.get(plugin_id)
        clean = [" ".join(tag.split())[:LONGEST] for tag in tags]
        selected = sorted({tag for tag in clean if tag})[:MOST]
        with self._store.write() as session:
            session.execute(delete(PluginTag).where(PluginTag.plugin_id == plugin_id))
            session.add_all(PluginTag(plugin_id=plugin_id, tag=tag) for tag in selected)
        return selected
