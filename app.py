"""Start the studio and a local worker: `python app.py`, then open http://127.0.0.1:7860."""

from engine.core.cores import share_cores
from engine.core.settings import load_settings
from studio.app import launch

if __name__ == "__main__":
    share_cores()
    launch(load_settings())
