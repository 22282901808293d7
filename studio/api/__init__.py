"""The studio's REST API: /api/v1 for all functions of the studio, and APIs compatible with LibreTranslate and DeepL.

`create_api` makes a separate application, which `studio.api.dispatch.Dispatcher` puts before the pages. Handlers that access the
store or the disk are plain functions, which the server runs in threads; those that wait for translations (`serving.batcher`)
use dedicated threads. Heavy modules are imported in the handlers that need them.

To extend the API, add a module with a `router` and list it in ROUTERS.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Literal

from fastapi import APIRouter, FastAPI
from pydantic.json_schema import models_json_schema
from starlette.routing import BaseRoute

import engine
from studio.api import (
    catalog,
    comparisons,
    deepl,
    deepl_documents,
    deepl_glossaries,
    deepl_styles,
    documents,
    jobs,
    libretranslate,
    phrases,
    plugins,
    projects,
    ratings,
    runs,
    samples,
    translate,
)
from studio.api import domain_proportions as shares
from studio.api import import_settings as reading
from studio.api import openapi_page as docs
from studio.api import phrase_explorer as explore
from studio.api.deps import Deps
from studio.api.errors import ERRORS, SCHEMAS, ErrorBody, add_handlers
from studio.api.form_fields import refuse_repeated_fields
from studio.api.head_requests import HeadRequests
from studio.api.permissions import AuthMiddleware
from studio.api.uploads import BoundedBody

if TYPE_CHECKING:
    from studio.services.service import Service

PREFIX = "/api/v1"
ROUTERS = tuple(
    module.router
    for module in (
        *(catalog, projects, samples, reading, explore, phrases, shares, jobs, runs),
        *(plugins, translate, documents, comparisons, ratings),
    )
)
ABOUT = (
    'Everything that the studio does, for programs. Errors are `{"error": {"code", "message"}}`. A token goes into '
    "`Authorization: Bearer`; `tailormt token create` makes one. It is not needed on the machine that the studio runs on."
)


def create_api(service: Service) -> FastAPI:
    """The API application over the service that it shares with the pages."""
    api = FastAPI(
        title="Tailor MT",
        version=engine.__version__,
        description=ABOUT,
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None,  # the pages of docs_url and redoc_url load scripts from another host
        redoc_url=None,
        redirect_slashes=False,
        separate_input_output_schemas=False,
        routes=_routes(),
    )
    api.state.deps = Deps(service)
    api.add_middleware(BoundedBody, settings=service.settings)
    api.add_middleware(AuthMiddleware)
    api.add_middleware(HeadRequests)
    add_handlers(api)
    api.openapi = lambda: _spec(api)  # type: ignore[method-assign]
    return api


@functools.cache
def _routes() -> list[BaseRoute]:
    """All routes. They are independent of the service and cached, since FastAPI is slow to build them."""
    every = APIRouter()
    refuse_repeated_fields(every)
    for router in ROUTERS:
        every.include_router(router, prefix=PREFIX, responses=ERRORS)
    every.include_router(docs.router, prefix=PREFIX, include_in_schema=False)
    for module in (deepl, deepl_documents, deepl_glossaries, deepl_styles, libretranslate):
        every.include_router(module.router)
    return every.routes


def _spec(api: FastAPI) -> dict[str, object]:
    """The OpenAPI document, with the error schemas of this API instead of FastAPI's."""
    if api.openapi_schema is None:
        spec = FastAPI.openapi(api)
        for path, operations in spec["paths"].items():
            if not path.startswith(PREFIX):
                for operation in operations.values():
                    operation["responses"].pop("422", None)  # a bad value is 400 there
        schemas = spec["components"]["schemas"]
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        mode: Literal["serialization"] = "serialization"
        models = [(model, mode) for model in (ErrorBody, deepl.DeepLError, libretranslate.LibreError)]
        schemas |= models_json_schema(models, ref_template=SCHEMAS)[1]["$defs"]
        api.openapi_schema = spec
    return api.openapi_schema
