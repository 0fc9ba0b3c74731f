# cmake -D FILES=a,b -D NAME=kFile -D OUTPUT=x.cpp -P embed.cmake: the files' bytes as arrays kFile0, kFile1, ... with their sizes.
string(REPLACE "," ";" FILES "${FILES}")
set(text "#include <cstddef>\nnamespace tw {\n")
set(index 0)
foreach(file IN LISTS FILES)
  file(READ ${file} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
  string(APPEND text "extern const unsigned char ${NAME}${index}[];\nextern const std::size_t ${NAME}${index}Size;\n"
    "const unsigned char ${NAME}${index}[] = {\n${bytes}};\nconst std::size_t ${NAME}${index}Size = sizeof ${NAME}${index};\n")
  math(EXPR index "${index} + 1")
endforeach()
file(WRITE ${OUTPUT} "${text}}  // namespace tw\n")
