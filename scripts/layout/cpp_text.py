"""What can be read from C and C++ without parsing them: functions, types, string literals, and names
of loops."""
import re

_QUIET = re.compile(
    r'R"(\w*)\((?:.|\n)*?\)\1"'                  # raw strings
    r"|//[^\n]*|/\*(?:.|\n)*?\*/"                # comments
    r"|^[ \t]*#(?:[^\n\\]|\\.|\\\n)*"            # directives
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'", re.MULTILINE)


def blanked(text: str) -> str:
    """Comments, directives and the insides of literals as blanks; lines stay where they are."""
    return _QUIET.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), text)


def _kind(head: str, inside: bool) -> str:
    """What a brace opens that stands behind this text."""
    if inside:
        return "block"
    if re.search(r"\b(namespace|extern)\b[^()]*$", head):
        return "scope"
    if re.match(r"\s*(template\s*<.*>\s*)?(typedef\s+)?(class|struct|union|enum)\b[^()]*$",
                head, re.DOTALL):
        return "scope"
    return "function" if "(" in head and not re.search(r"=[^()]*$", head) else "block"


def functions(text: str):
    """(first line, last line, head) of each function; lambdas count to the function around."""
    line, begin, head, stack = 1, None, "", []
    for character in blanked(text):
        inside = any(kind == "function" for kind, _, _ in stack)
        if character == "\n":
            line += 1
        if character == "{":
            kind = _kind(head, inside)
            stack.append((kind, begin or line, head))
            if kind != "block":
                begin, head = None, ""
        elif character == "}" and stack:
            kind, first, its_head = stack.pop()
            if kind == "function":
                yield first, line, " ".join(its_head.split())
            if kind != "block" or not stack:
                begin, head = None, ""
        elif character == ";" and not inside:
            begin, head = None, ""
        elif not inside:
            begin = line if begin is None and not character.isspace() else begin
            head += character


def literals(text: str):
    """(line number, text) of each string literal, quotes included."""
    for match in _QUIET.finditer(text):
        if match.group(0).startswith(('"', "R\"")):
            yield text.count("\n", 0, match.start()) + 1, match.group(0)


_NAME = r"\b(?:\w*_)?(?:label|var|loop|stage|nest|lane)(?:\(\))?"
_TEXT = r"\s*[\"']"
_STEPS = ("split|tile|fuse|reorder|vectorize|unroll|parallel|parallelize|compute_at|compute_inline|"
          "compute_root|reverse_compute_at|cache_read|cache_write|pack|block|flatten|retype|recount|unguard|skew|narrow|set_scope|rfactor|replicate|hoist|peel|partition|"
          "decompose_reduction|bind|virtual_thread|tensorize|blockize|pad|storage_align|layout|"
          "prefetch|pipeline|async_copy|roles|annotate")
_NAMING = re.compile(
    rf"{_NAME}(?:\[0\]|\.front\(\))?\s*[!=]={_TEXT}"
    rf"|{_NAME}\.(?:starts_with|ends_with|contains|find|rfind|consume_front)\({_TEXT}"
    rf"|\b(?:find_loop|path_to|find_buffer|find_stage)\([^()]*{_TEXT}"
    r"|\bbuffer\w*(?:\([^()]*\))?(?:\.|->)name\s*[!=]=" + _TEXT +
    rf"|\bstep::\w+\{{[\s{{]*\""
    rf"|\.(?:{_STEPS})\([\s{{]*\"")


def named_loops(text: str):
    """(line number, line) where code compares or gives the name of a loop, stage or buffer."""
    for number, line in enumerate(text.splitlines(), 1):
        if _NAMING.search(line.split("//")[0]):
            yield number, line.strip()


_TYPE = re.compile(r"(?:template\s*<.*>\s*)?(class|struct|union|enum(?:\s+(?:class|struct))?)\s+"
                   r"(?:\[\[\w+\]\]\s*)?(\w+)(?:\s+final)?\s*(?::(?!:).*)?$", re.DOTALL)


def types(text: str):
    """(line, name with its namespaces) of each type with a body in a namespace that has a name."""
    line, begin, head, stack = 1, None, "", []
    for character in blanked(text):
        if character == "\n":
            line += 1
        if character == "{":
            space = re.search(r"(?:^|\s)(?:inline\s+)?namespace(?:\s+([\w:]+))?\s*$", head)
            made = _TYPE.match(head.strip())
            path = [name for name in stack if name is not None]
            if made and len(path) == len(stack):
                yield begin, "::".join([*path, made.group(2)])
            stack.append(space.group(1) if space else None)
            begin, head = None, ""
        elif character == "}":
            if stack:
                stack.pop()
            begin, head = None, ""
        elif character == ";":
            begin, head = None, ""
        else:
            begin = line if begin is None and not character.isspace() else begin
            head += character
