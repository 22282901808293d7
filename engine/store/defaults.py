"""The plugin that a project translates with unless a request specifies one."""

from __future__ import annotations

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from engine.errors import InputError
from engine.store import tables
from engine.store.records import PluginRow


class DefaultPlugin(tables.Base):
    __tablename__ = "default_plugin"

    project_id: Mapped[int] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"), primary_key=True)
    plugin_id: Mapped[int | None] = mapped_column(ForeignKey("plugin.id", ondelete="CASCADE"))


class Defaults(tables.StorePart):
    """The default plugin of each project: the plugin or base that was chosen, else the newest usable plugin.

    Plugins that are imported, blended or do harm are only used if chosen.
    """

    def get(self, project_id: int) -> PluginRow | None:
        """The default plugin; None for the base only, or if no plugin with an existing bundle qualifies."""
        with self._store.read() as session:
            record = session.get(DefaultPlugin, project_id)
            number = record.plugin_id if record else None
        if record is not None and number is None:
            return None
        chosen = self._store.plugins.by_numbers(project_id, [number]).get(number) if number is not None else None
        return chosen if chosen is not None and chosen.exists else self._store.plugins.first_usable(project_id)

    def chosen(self, project_id: int) -> bool:
        """Whether a default was chosen, so that a newer plugin does not replace it."""
        with self._store.read() as session:
            return session.get(DefaultPlugin, project_id) is not None

    def set(self, project_id: int, plugin_id: int | None) -> None:
        """Choose a plugin of the project, or with None the base only. Raises InputError if there is no such plugin."""
        self._store.projects.get(project_id)
        if plugin_id is not None and self._store.plugins.get(plugin_id).project_id != project_id:
            raise InputError("Plugin {plugin_id} belongs to another project. Choose one of this project.", plugin_id=plugin_id)
        with self._store.write() as session:
            session.merge(DefaultPlugin(project_id=project_id, plugin_id=plugin_id))

    def clear(self, project_id: int) -> None:
        """Clear the choice: the default is again the newest usable plugin."""
        with self._store.write() as session:
            record = session.get(DefaultPlugin, project_id)
            if record is not None:
                session.delete(record)
