"""Proxies before the studio: what they say of a client is believed of those that the settings name, and of nobody else."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from engine.errors import OptionError

KEY = "tailormt.proxied"  # in the scope of a request that a trusted proxy brought
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def networks(trusted: Sequence[str]) -> list[Network]:
    """The setting `trusted_proxies` as networks. Raises OptionError on what is none."""
    try:
        return [ipaddress.ip_network(one, strict=False) for one in trusted]
    except ValueError as error:
        raise OptionError("trusted_proxies: {error}.", error=error) from None


class TrustedProxies:
    """Puts the client's address and scheme into the scope of a request from a trusted proxy. Plain ASGI, the outermost."""

    def __init__(self, app: ASGIApp, trusted: Sequence[str] = ()) -> None:
        self.app, self.trusted = app, networks(trusted)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope.get("client") and self._trusts(scope["client"][0]):
            headers = Headers(scope=scope)
            hops = [hop.strip() for line in headers.getlist("x-forwarded-for") for hop in line.split(",")]
            scope = {**scope, KEY: True, "client": (self._client(hops, scope["client"][0]), 0)}
            schemes = headers.getlist("x-forwarded-proto")
            if schemes and (scheme := schemes[-1].rpartition(",")[2].strip().lower()) in ("http", "https"):
                scope["scheme"] = scheme
        await self.app(scope, receive, send)

    def _trusts(self, address: str) -> bool:
        try:
            result = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return False
        mapped = getattr(result, "ipv4_mapped", None) or result
        return any(mapped in network for network in self.trusted)

    def _client(self, hops: Sequence[str], peer: str) -> str:
        """The last address that is not a trusted proxy's; anything before it in the header may be forged."""
        for hop in reversed(hops):
            try:
                ipaddress.ip_address(hop)
            except ValueError:
                break
            peer = hop
            if not self._trusts(hop):
                break
        return peer
