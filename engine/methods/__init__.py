"""Methods of customization behind a common interface. No code outside this package refers to a method by name."""

from engine.methods.interface import Artefacts, Capabilities, Loss, Method
from engine.methods.registry import get_method, method_names, register
