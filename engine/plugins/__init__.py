"""Plugin bundles: written atomically, verified before use, and loaded over the base they were made for."""

from engine.plugins.bundle import FORMAT_VERSION, read_bundle_card, read_bundle_text, unpack_bundle, verify_bundle
from engine.plugins.export import BundleContent, export_bundle
from engine.plugins.plugin import Plugin
from engine.plugins.stack import PluginStack
