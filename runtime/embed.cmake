# cmake -D FILES=a,b -D NAME=kFile -D OUTPUT=x.cpp -P embed.cmake
# writes the files' bytes as arrays kFile0, kFile1, ... with their sizes.
# With -D TABLE=kTable it also writes a table of the arrays by file names without folder and ending
# (support/embedded_file.h).
string(REPLACE "," ";" FILES "${FILES}")
set(text "#include <cstddef>\n")
if(TABLE)
  string(APPEND text "#include \"support/embedded_file.h\"\n")
endif()
string(APPEND text "namespace tw {\n")
set(index 0)
foreach(file IN LISTS FILES)
  file(READ ${file} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
  string(APPEND text "extern const unsigned char ${NAME}${index}[];\nextern const std::size_t ${NAME}${index}Size;\n"
    "const unsigned char ${NAME}${index}[] = {\n${bytes}};\nconst std::size_t ${NAME}${index}Size = sizeof ${NAME}${index};\n")
  get_filename_component(stem ${file} NAME_WE)
  string(APPEND rows "  {\"${stem}\", {reinterpret_cast<const char*>(${NAME}${index}), ${NAME}${index}Size}},\n")
  math(EXPR index "${index} + 1")
endforeach()
if(TABLE)
  string(APPEND text "extern const std::vector<EmbeddedFile> ${TABLE};\nconst std::vector<EmbeddedFile> ${TABLE} = {\n${rows}};\n")
endif()
file(WRITE ${OUTPUT} "${text}}  // namespace tw\n")
