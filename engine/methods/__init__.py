"""Methods of customization behind one interface; nothing outside this package knows a method by name."""

from engine.methods.interface import Artefacts, Capabilities, Loss, Method
from engine.methods.registry import get_method, method_names, register
