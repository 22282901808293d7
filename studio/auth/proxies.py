"""Reverse proxies in front of the studio: only those named in the settings are trusted to report the client's address."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from engine.errors import OptionError

KEY = "tailormt.proxied"  # in the scope of a request from a trusted proxy
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def networks(trusted: Sequence[str]) -> list[Network]:
    """The setting `trusted_proxies` as networks. Raises OptionError on an invalid one."""
    try:
        return [ipaddress.ip_network(network, strict=False) for network in trusted]
    except ValueError as error:
        raise OptionError("trusted_proxies: {error}.", error=error) from None


class TrustedProxies:
    """Sets the client's address and scheme in the scope of a request from a trusted proxy. Plain ASGI, outermost."""

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
        """The last address that is not a trusted proxy; earlier ones in the header may be forged."""
        for hop in reversed(hops):
            try:
                ipaddress.ip_address(hop)
            except ValueError:
                break
            peer = hop
            if not self._trusts(hop):
                break
        return peer
