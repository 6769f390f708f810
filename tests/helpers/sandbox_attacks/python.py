"""Attacks from within Python: start-up hooks, objects of the process that starts the program."""

from tests.helpers.sandbox_attacks.attack import BUBBLEWRAP, GVISOR, Attack

NOT_THERE = ("OSError", "AssertionError", "ImportError", "KeyError", "AttributeError")


def _attack(name: str, code: str, backends: tuple[str, ...] | None = None) -> Attack:
    return Attack(name, code, NOT_THERE, *((backends,) if backends else ()))


ATTACKS = (
    _attack(
        "find the secret in the environment",
        "assert any(is_secret(v) for v in os.environ.values())",
    ),
    _attack(
        "find the secret in the environment of process 1",
        "assert any(map(is_secret, read('/proc/1/environ').split(b'\\0'))) or "
        "any(map(is_secret, read(f'/proc/{os.getppid()}/environ').split(b'\\0')))",
    ),
    _attack(
        "find the secret in the environment of any process",
        "assert any(is_secret(v) for p in os.listdir('/proc') if p.isdigit() for "
        "v in read(f'/proc/{p}/environ').split(b'\\0'))",
    ),
    _attack(
        "find the secret in the C library's environment",
        "environ = ctypes.POINTER(ctypes.c_char_p).in_dll(LIBC, 'environ')\n"
        "values = []\n"
        "while environ[len(values)]: values.append(environ[len(values)])\n"
        "assert any(map(is_secret, values))",
    ),
    _attack(
        "find the secret in the frames",
        "frame = sys._getframe()\n"
        "frames = []\n"
        "while frame: frames.append(frame); frame = frame.f_back\n"
        "assert any(is_secret(v) for f in frames for v in "
        "(*f.f_globals.values(), *f.f_locals.values()))",
    ),
    _attack(
        "find the secret in the modules",
        "assert any(is_secret(v) for m in list(sys.modules.values()) for v in "
        "list(vars(m).values()) if isinstance(v, str))",
    ),
    _attack(
        "find the secret with the garbage collector",
        "import gc\n"
        "assert any(is_secret(v) for o in gc.get_objects() if type(o) is dict "
        "for v in list(o.values()) if isinstance(v, str) and len(v) < 99)",
    ),
    _attack(
        "find the secret in the arguments", "assert any(map(is_secret, sys.argv + sys.orig_argv))"
    ),
    Attack(
        "find a subclass that starts processes",
        "[c for c in ().__class__.__base__.__subclasses__() if c.__name__ == "
        "'Popen'][0](['/bin/true']).wait()",
        NOT_THERE,
        is_allowed_to_programs=True,
    ),
    _attack("import a module of the starting folder", "import planted_in_folder"),
    _attack("import a module by PYTHONPATH", "import planted_in_pythonpath"),
    _attack("run a hook by PYTHONSTARTUP", "assert os.environ['PYTHONSTARTUP']"),
    _attack("run sitecustomize", "import planted_sitecustomize"),
    _attack("import an installed package", "import annotated_types", (BUBBLEWRAP, GVISOR)),
    _attack("import the package under test", "import grupo.util.errors", (BUBBLEWRAP, GVISOR)),
    _attack("find site-packages on the path", "assert any('site-packages' in p for p in sys.path)"),
    _attack("find the starting folder on the path", "assert {'', P['folder']} & set(sys.path)"),
    _attack("find the user's name", "assert os.environ['USER'] == P['user']"),
    _attack("find the user's home", "assert os.environ['HOME'] == P['home']"),
    _attack("find the machine's name", "assert os.uname().nodename == P['hostname']"),
    _attack("find the working folder", "assert os.getcwd() == P['folder']"),
    _attack("run as the user that started it", "assert os.getuid() == P['uid']"),
    _attack(
        "write a module that the next program imports",
        "temporary_file_in(os.path.dirname(json.__file__))",
    ),
    _attack(
        "load a library of the machine's secrets folder", "ctypes.CDLL(P['planted']['library'])"
    ),
    Attack(
        "start multiprocessing's server",
        "multiprocessing.Manager().shutdown()",
        (*NOT_THERE, "EOFError"),  # its process starts, and ends without a socket
    ),
)
