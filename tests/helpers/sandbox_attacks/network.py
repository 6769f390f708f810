"""Attacks through sockets: listeners of the test on loopback, families, inherited sockets."""

from tests.helpers.sandbox_attacks.attack import Attack

FAMILIES = {
    "netlink": (16, 3, 0),
    "packet": (17, 3, 0),
    "vsock": (40, 1, 0),
    "kernel crypto": (38, 5, 0),
    "IPv4": (2, 1, 0),
    "IPv6": (10, 1, 0),
    "UDP": (2, 2, 0),
    "UDP over IPv6": (10, 2, 0),
    "raw ICMP": (2, 3, 1),
    "ping": (2, 2, 1),
    "Unix": (1, 1, 0),
    "Unix datagrams": (1, 2, 0),
    "key management": (15, 3, 2),
    "CAN": (29, 3, 1),
    "Bluetooth": (31, 3, 1),
    "TIPC": (30, 2, 0),
    "RDS": (21, 5, 0),
    "XDP": (44, 3, 0),
    "SMC": (43, 1, 0),
    "MCTP": (45, 2, 0),
}
SEND = "s.sendto(b'attack', {address}); s.close()"

ATTACKS = (
    *(
        Attack(
            f"open a socket: {name}",
            f"os.close(call('socket', {family}, {kind}, {protocol}))",
            is_optional=True,
        )
        for name, (family, kind, protocol) in FAMILIES.items()
    ),
    Attack("connect by TCP", "socket.create_connection(('127.0.0.1', P['tcp_port']), 2).close()"),
    Attack(
        "connect by TCP over IPv6", "socket.create_connection(('::1', P['tcp6_port']), 2).close()"
    ),
    Attack(
        "connect to a name", "socket.create_connection(('localhost', P['tcp_port']), 2).close()"
    ),
    Attack(
        "send by UDP",
        "s = socket.socket(type=socket.SOCK_DGRAM)\n"
        + SEND.format(address="('127.0.0.1', P['udp_port'])"),
    ),
    Attack(
        "fetch a page",
        'urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"http'
        "://127.0.0.1:{P['http_port']}/\", timeout=2).read()",
    ),
    Attack(
        "fetch a page with http.client",
        "c = http.client.HTTPConnection('127.0.0.1', P['http_port'], timeout=2); "
        "c.request('GET', '/'); c.getresponse().read()",
    ),
    Attack(
        "connect with asyncio",
        "async def connect():\n"
        "    _, writer = await asyncio.wait_for(asyncio.open_connection('127.0.0."
        "1', P['tcp_port']), 2)\n"
        "    writer.close()\n"
        "asyncio.run(connect())",
    ),
    Attack("listen", "socket.create_server(('127.0.0.1', 0)).close()"),
    Attack(
        "listen on a Unix socket",
        "s = socket.socket(socket.AF_UNIX); s.bind(tempfile.mktemp()); s.listen(); s.close()",
    ),
    Attack(
        "connect to an abstract Unix socket",
        "s = socket.socket(socket.AF_UNIX); s.connect(P['abstract_name']); s.close()",
    ),
    Attack(
        "connect to a Unix socket such as Docker's",
        "s = socket.socket(socket.AF_UNIX); s.connect(P['planted']['docker_socket']); s.close()",
    ),
    Attack(
        "send a datagram from a pair of sockets",
        "a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
        "a.sendto(b'attack', P['abstract_datagram_name'])",
    ),
    Attack(
        "send a descriptor through a pair of sockets",
        "a, b = socket.socketpair()\nsocket.send_fds(a, [b'x'], [0])",
    ),
    Attack(
        "enlarge the buffers of a pair of sockets",
        "a, b = socket.socketpair()\na.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)",
    ),
    Attack(
        "hold 60 MB in the buffers of sockets",
        "pairs = [socket.socketpair() for _ in range(150)]\n"
        "held = 0\n"
        "for s in (s for pair in pairs for s in pair):\n"
        "    s.setblocking(False)\n"
        "    try:\n"
        "        while True: held += s.send(bytes(4096))\n"
        "    except BlockingIOError: pass\n"
        "assert held > 40_000_000, held",
    ),
    Attack(
        "use an inherited socket",
        "assert [fd for fd in range(64) if LIBC.fcntl(fd, 1) != -1 and "
        "stat.S_ISSOCK(os.fstat(fd).st_mode)]",
    ),
    Attack("see network interfaces", "assert socket.if_nameindex()"),
    Attack(
        "read the table of connections",
        "assert f\":{P['tcp_port']:04X}\".encode() in read('/proc/net/tcp')",
    ),
    Attack(
        "find the proxy in the environment",
        "assert os.environ['http_proxy'] == P['proxy']",
        ("KeyError", "AssertionError"),
    ),
)
