"""Two runs of one program give its functions the same names; different functions keep different ones."""

from __future__ import annotations

import pytest

from agents.profiles.base.profile import UNKNOWN, Frame
from agents.profiles.names import is_thread, is_unknown, normal_name

SAME = (
    ("Busy$$Lambda$7.0x00007f84b4001448.run", "Busy$$Lambda.run"),
    ("Busy$$Lambda$14/0x0000000800066840.run", "Busy$$Lambda.run"),
    ("Busy$$Lambda$3/1324119927.run", "Busy$$Lambda.run"),
    ("Busy$$Lambda/0x00007f4c48041600.run", "Busy$$Lambda.run"),
    ("Busy$$Lambda.0x00007f4c48041600.run_[0]", "Busy$$Lambda.run"),
    ("java/lang/invoke/LambdaForm$MH.0x00007f84b4002000.invoke", "java/lang/invoke/LambdaForm$MH.invoke"),
    ("java/lang/invoke/LambdaForm$DMH/0x0000000800c03000.invokeStatic", "java/lang/invoke/LambdaForm$DMH.invokeStatic"),
    ("com/acme/Hidden+0x00007f84b4002000.call", "com/acme/Hidden.call"),
    ("Busy.lambda$main$2", "Busy.lambda$main$#"),
    ("app.Page$.$anonfun$render$12", "app.Page$.$anonfun$render$#"),
    ("jdk/internal/reflect/GeneratedMethodAccessor12.invoke", "jdk/internal/reflect/GeneratedMethodAccessor#.invoke"),
    ("sun/reflect/GeneratedConstructorAccessor3.newInstance", "sun/reflect/GeneratedConstructorAccessor#.newInstance"),
    ("$Proxy0.render", "$Proxy#.render"),
    ("jdk/proxy2/$Proxy37.render_[1]", "jdk/proxy#/$Proxy#.render"),
    ("com.acme.Shop$$EnhancerBySpringCGLIB$$1a2b3c4d.buy", "com.acme.Shop$$EnhancerBySpringCGLIB.buy"),
    ("com.acme.Shop$$FastClassBySpringCGLIB$$9f8e7d6c.invoke", "com.acme.Shop$$FastClassBySpringCGLIB.invoke"),
    ("com.acme.Shop$$SpringCGLIB$$0.buy", "com.acme.Shop$$SpringCGLIB.buy"),
    ("com.acme.Item$HibernateProxy$kX3pQ2aB.getName", "com.acme.Item$HibernateProxy.getName"),
    ("com.acme.Item$ByteBuddy$a1B2c3D4.getName", "com.acme.Item$ByteBuddy.getName"),
    ("com.acme.Item_$$_jvst5f2_1a.getName", "com.acme.Item_$$_jvst.getName"),
    ("Ljava/util/HashMap;::getNode", "java/util/HashMap.getNode"),
    ("java/lang/Integer.parseInt_[j]", "java/lang/Integer.parseInt"),
    ("do_syscall_64_[k]", "do_syscall_64"),
    ("finish_task_switch.isra.0", "finish_task_switch"),
    ("parse.constprop.0.cold", "parse"),
    ("hot.llvm.1234567890", "hot"),
    ("core::fmt::write::h0123456789abcdef", "core::fmt::write"),
    ("memcpy@@GLIBC_2.14", "memcpy"),
    ("runtime.memmove.abi0", "runtime.memmove"),
    ("parse+0x1f", "parse"),
    ("LazyCompile:*render /srv/app/page.js:12", "render /srv/app/page.js:12"),
    ("parse (busy.py:3)", "parse (busy.py)"),
    ("parse (/srv/a/app/busy.py:17)", "parse (busy.py)"),
    ("<module> (<frozen site>:616)", "<module> (<frozen site>)"),
    ("JSONDecoder.decode (json/decoder.py:337)", "JSONDecoder.decode"),
    ("loads (json/__init__.py:346)", "loads (json/__init__.py)"),
    ("get (/v/lib/python3.11/site-packages/requests/api.py:73)", "get (requests/api.py)"),
    ("[http-nio-8080-exec-12 tid=7431]", "[http-nio-#-exec-# tid=#]"),
    ("thread (4690): MainThread", "thread (#): MainThread"),
)

KEPT = (
    "com/acme/Page.render",
    "com/acme/Page$1.run",
    "com/acme/Page$Builder.<init>",
    "strings.(*Builder).grow",
    "main.main.func1",
    "std::vector<int, std::allocator<int> >::push_back",
    "operator new",
    "md5_block_x86_64",
    "(garbage collector)",
    "utf8.decode",
    "sha256.part2",
    "[vdso]",
    "Interpreter",
)


@pytest.mark.parametrize("name, normal", SAME)
def test_what_a_runtime_numbers_anew_is_taken_out_of_a_name(name: str, normal: str) -> None:
    assert normal_name(Frame(name)) == normal
    assert normal_name(Frame(normal)) == normal


@pytest.mark.parametrize("name", KEPT)
def test_other_names_stay_as_they_are(name: str) -> None:
    assert normal_name(Frame(name)) == name


@pytest.mark.parametrize(
    "frame, normal",
    [
        (Frame("parse", "/opt/releases/41/busy"), "parse (busy)"),
        (Frame("get", "file:///srv/a/node_modules/express/lib/router/index.js"), "get (express/lib/router/index.js)"),
        (Frame("(anonymous)", "file:///srv/a/page.js"), "(anonymous) (page.js)"),
        (Frame("main.parse", "/src/41/main.go"), "main.parse"),
        (Frame(UNKNOWN, "libc.so.6"), UNKNOWN),
    ],
)
def test_a_short_name_keeps_its_file_without_directories_that_differ_between_builds(frame: Frame, normal: str) -> None:
    assert normal_name(frame) == normal


@pytest.mark.parametrize(
    "name",
    [
        "",
        "[unknown]",
        "[unknown_Java]",
        "[not_walkable_not_Java]",
        "[no_Java_frame]",
        "??",
        "0x7f84b4001448",
    ],
)
def test_a_frame_whose_function_nobody_knows_is_unknown(name: str) -> None:
    assert is_unknown(Frame(name))
    assert normal_name(Frame(name)) == UNKNOWN


@pytest.mark.parametrize("name", ["[http-exec-7 tid=7430]", "[tid=12]", "thread (4690)", "thread (0x7F01): main"])
def test_a_thread_is_no_function(name: str) -> None:
    assert is_thread(Frame(name))
    assert not is_unknown(Frame(name))
    assert not is_thread(Frame("java/lang/Thread.run"))
