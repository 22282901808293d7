"""Going from page to page within the document: what Gradio has loaded stays loaded, so that a step is there at once.

Every page is a document of its own with an address of its own, and opens as that by a reload, a bookmark or a link sent to
somebody. A click on a step fetches that document too, but takes from it only what the page is made of, and gives that to
the running Gradio, which takes the old page down and puts the new one up. Loading and starting Gradio again takes most of a
second; this takes a fifth of that. Where anything is not as expected, or Gradio does not come up again (an answer to the old
page may reach it as it starts), the address is simply opened.
"""

from __future__ import annotations

from studio.components.templating import script

MOVES = script("navigation.js")
