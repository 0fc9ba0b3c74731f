# The table of the suites. ctest runs them; scripts/suites.py chooses among them, by labels:
#   watch=FOLDER   a change there asks for the suite
#   needs=GROUP    what scripts/setup.sh installs for it
#   target=NAME    what is built for it
#   quick          it belongs to scripts/test.sh --quick
#   full           it runs under --full alone
#   always         it runs each time
#   installed      it runs where what it needs is installed already, and under --full
#   unit, suite    a test program; a script
#   sanitized      it builds its test program with sanitizers
# A suite's cost is in seconds of one core, the build of its own test program counted.
#
#   tw_suite(NAME SECONDS SCRIPT [ARGS ...] [PARTS N] [FULL ARGS ...] [WATCHES FOLDER ...] [NEEDS GROUP ...]
#            [TARGETS NAME ...] [LABELS LABEL ...] [PYTHON ENVIRONMENT] [PLAIN] [SERIAL])
#     PARTS    as many suites NAME_0, NAME_1 ..; of each {part} in ARGS is "I/N"
#     FULL     one more suite NAME_full with these arguments, which stands for all parts under --full
#     PLAIN    SCRIPT gets no --tilewright
#     SERIAL   it measures, uses all cores, or most of the memory

function(tw_describe name seconds)
  cmake_parse_arguments(PARSE_ARGV 2 own "SERIAL" "" "WATCHES;NEEDS;TARGETS;LABELS")
  list(TRANSFORM own_WATCHES PREPEND watch=)
  list(TRANSFORM own_NEEDS PREPEND needs=)
  list(TRANSFORM own_TARGETS PREPEND target=)
  set(labels ${own_LABELS} ${own_WATCHES} ${own_NEEDS} ${own_TARGETS})
  math(EXPR limit "600 + 10 * ${seconds}")
  set_tests_properties(${name} PROPERTIES COST ${seconds} TIMEOUT ${limit} LABELS "${labels}" RUN_SERIAL "${own_SERIAL}")
endfunction()

# Test programs of a room: tw_unit(NAME SECONDS [as tw_describe])
function(tw_unit name seconds)
  if(NOT TEST ${name})
    return()
  endif()
  tw_describe(${name} ${seconds} ${ARGN})
  string(REGEX REPLACE "_.*" "" room ${name})
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${room})
    set_property(TEST ${name} APPEND PROPERTY LABELS watch=tests/${room})
  endif()
  set_property(TEST ${name} APPEND PROPERTY LABELS unit)
endfunction()
set(front ir frontend support)
set(code ir kernels passes backends/llvm backends/cpu)
tw_unit(support 20 WATCHES support TARGETS test_support LABELS quick)
tw_unit(ir 140 WATCHES ir support TARGETS test_ir LABELS quick)
tw_unit(frontend 100 WATCHES ${front} TARGETS test_frontend LABELS quick)
tw_unit(passes 90 WATCHES ir passes TARGETS test_passes LABELS quick)
tw_unit(program 200 WATCHES ir program kernels passes TARGETS test_program LABELS quick)
tw_unit(backends 250 WATCHES ir kernels backends/llvm backends/backend.h TARGETS test_backends)
tw_unit(opencl 350 WATCHES kernels/device backends/opencl backends/device ir/schedule TARGETS test_opencl NEEDS opencl)
tw_unit(cuda 550 WATCHES kernels/device backends/cuda backends/device ir/schedule TARGETS test_cuda NEEDS cuda)
tw_unit(vdla 150 WATCHES backends/vdla kernels/device ir/schedule TARGETS test_vdla NEEDS vdla)
tw_unit(autotune 300 WATCHES autotune kernels ir/schedule TARGETS test_autotune)
tw_unit(accuracy 20 WATCHES driver cli TARGETS test_accuracy LABELS quick)
tw_unit(packager 200 WATCHES packager runtime TARGETS test_packager)
tw_unit(cli 550 WATCHES cli driver packager runtime ${code} TARGETS test_cli NEEDS vdla opencl)
tw_unit(cli_operators 250 WATCHES ${front} ${code} runtime TARGETS test_cli NEEDS vdla opencl)
tw_unit(onnx 450 WATCHES ${front} ${code} program runtime TARGETS test_onnx)
tw_unit(cli_messages 80 WATCHES cli driver frontend LABELS quick)
tw_unit(trust_escape 20 WATCHES support driver TARGETS escape)
tw_unit(build_paths 1 WATCHES CMakeLists.txt cmake LABELS quick)

if(NOT CMAKE_BUILD_TYPE STREQUAL "Release" OR NOT lacking STREQUAL "0")   # the scripts want the test group's environment
  return()
endif()

function(tw_suite name seconds script)
  cmake_parse_arguments(PARSE_ARGV 3 own "PLAIN;SERIAL" "PARTS;PYTHON" "ARGS;FULL;WATCHES;NEEDS;TARGETS;LABELS")
  set(command ${CMAKE_SOURCE_DIR}/${script})
  if(script MATCHES "\\.py$")
    set(environment .venv)
    if(own_PYTHON)
      set(environment .venv-${own_PYTHON})
      list(APPEND own_NEEDS ${own_PYTHON})
    endif()
    list(PREPEND command ${CMAKE_SOURCE_DIR}/${environment}/bin/python)
  endif()
  set(compiler)
  if(NOT own_PLAIN)
    set(compiler --tilewright $<TARGET_FILE:tilewright>)
  endif()
  if(own_SERIAL)
    set(serial SERIAL)
  endif()
  get_filename_component(folder ${script} DIRECTORY)
  set(described WATCHES ${own_WATCHES} ${folder} NEEDS ${own_NEEDS} TARGETS ${own_TARGETS} ${serial})
  if(own_PARTS)
    math(EXPR last "${own_PARTS} - 1")
    foreach(part RANGE ${last})
      string(REPLACE "{part}" "${part}/${own_PARTS}" arguments "${own_ARGS}")
      add_test(NAME ${name}_${part} COMMAND ${command} ${arguments} ${compiler} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
      tw_describe(${name}_${part} ${seconds} ${described} LABELS suite ${own_LABELS})
    endforeach()
  else()
    add_test(NAME ${name} COMMAND ${command} ${own_ARGS} ${compiler} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    tw_describe(${name} ${seconds} ${described} LABELS suite ${own_LABELS})
  endif()
  if(own_FULL)
    set(parts 1)
    if(own_PARTS)
      set(parts ${own_PARTS})
    endif()
    math(EXPR all "${seconds} * ${parts}")
    add_test(NAME ${name}_full COMMAND ${command} ${own_FULL} ${compiler} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    tw_describe(${name}_full ${all} ${described} LABELS suite full)
  endif()
endfunction()

# A run that is not chosen by what it costs: it shows that the main job works.
tw_suite(demo 10 scripts/demo.sh PLAIN SERIAL LABELS always quick)
tw_suite(docs 190 tests/docs/check_docs.py WATCHES docs README.md cli)
tw_suite(operators_page 1 tests/onnx/operators.py PLAIN ARGS ${ONNX_CASES} --check WATCHES frontend docs/reference TARGETS onnx_cases LABELS quick)
tw_suite(operator_table_page 1 tests/operators/operator_table.py PLAIN ARGS --check WATCHES frontend docs/reference LABELS quick)
tw_suite(operator_table 25 tests/operators/operator_table.py ARGS --share {part} PARTS 8 FULL --full WATCHES ${front} runtime)
tw_suite(packages 80 tests/packages/packages.py PLAIN ARGS --build ${CMAKE_BINARY_DIR} SERIAL WATCHES scripts/package runtime cli)
tw_suite(packages_ci 116 tests/packages/ci.py PLAIN ARGS --build ${CMAKE_BINARY_DIR} SERIAL WATCHES scripts/package cmake cli)
tw_suite(packages_clean_root 300 tests/packages/packages.py PLAIN ARGS --build ${CMAKE_BINARY_DIR} --clean-root SERIAL LABELS full)
tw_suite(packages_ci_clean_root 300 tests/packages/ci.py PLAIN ARGS --build ${CMAKE_BINARY_DIR} --clean-root SERIAL LABELS full)
tw_suite(readme_clean_root 5000 tests/packages/readme.py PLAIN SERIAL LABELS full)
tw_suite(packages_aarch64 3500 tests/packages/aarch64.sh SERIAL NEEDS aarch64 LABELS full)
tw_suite(builds 75 tests/builds/builds.py PLAIN ARGS --build ${CMAKE_BINARY_DIR} SERIAL WATCHES cli cmake packager)
tw_suite(report 20 tests/report/report.py WATCHES driver/report cli)
tw_suite(interfaces 16 tests/interfaces/interfaces.py WATCHES runtime packager cli)
tw_suite(five_gib 200 tests/interfaces/five_gib.py SERIAL LABELS full)

foreach(row attacks@25@driver\;frontend\;support\;packager untrusted@8@driver\;support depfiles@6@driver\;cli changing_files@80@driver\;packager
        growth@25@driver\;passes bounds@1@packager\;driver logs@40@autotune)
  string(REPLACE "@" ";" row "${row}")
  list(POP_FRONT row suite seconds)
  tw_suite(trust_${suite} ${seconds} tests/trust/${suite}.py WATCHES ${row})
endforeach()
tw_suite(verified 10 tests/accuracy/verified.py WATCHES driver frontend program)
tw_suite(micro 30 tests/micro/micro.py WATCHES runtime packager backends/llvm)
tw_suite(real_models 10 tests/real_models/real_models.py WATCHES frontend kernels)

foreach(row boards@9@runtime\;packager\;backends/llvm spills@18@kernels\;backends/llvm runner@12@runtime\;packager android@4@packager\;runtime
        small_floats@6@backends/llvm\;kernels free_rows@17@kernels\;program strings@8@runtime\;frontend)
  string(REPLACE "@" ";" row "${row}")
  list(POP_FRONT row suite seconds)
  tw_suite(boards_${suite} ${seconds} tests/boards/${suite}.py WATCHES ${row})
endforeach()
tw_suite(boards_node_cases 80 tests/boards/node_cases.py ARGS ${ONNX_CASES} --shard {part} PARTS 6 TARGETS onnx_cases WATCHES ${front} ${code} runtime)

# Whole models, each kind against onnxruntime or the reference evaluators.
foreach(row algorithms@8@kernels\;passes contrib@20@frontend decoder@4@frontend\;kernels/attention sizes@17@program\;frontend
        rivals@8@bench reduce@2@kernels/reduce few_lanes@4@backends/llvm extents@16@program\;frontend tails@3@kernels declarations@3@frontend
        hostile_sizes@17@frontend\;program reports@30@frontend\;kernels\;passes\;backends\;program functions@5@frontend
        grid_sample@6@frontend empty@115@frontend\;program\;kernels rounding@5@frontend\;passes meeting_extents@30@frontend\;program
        out_of_range@65@frontend\;program\;ir\;runtime wrapping@21@frontend\;program\;ir as_exported@40@frontend resize@150@frontend\;kernels/elementwise
        integer_products@55@kernels\;backends/llvm wide_products@45@kernels\;ir grouped_products@155@kernels\;backends/llvm
        one_text@55@kernels\;passes kill_tuner@30@autotune\;driver dataset@105@autotune\;driver worker@90@autotune\;runtime one_shot@320@autotune predictor_quality@60@autotune\;datasets signals@42@driver\;autotune)
  string(REPLACE "@" ";" row "${row}")
  list(POP_FRONT row suite seconds)
  tw_suite(models_${suite} ${seconds} tests/models/${suite}.py WATCHES ${row})
endforeach()
tw_suite(models_convolutions 80 tests/models/convolutions.py WATCHES kernels ir NEEDS opencl)
tw_suite(models_run 480 tests/models/run.py ARGS --full TARGETS detect WATCHES ${code} program frontend)
tw_suite(models_bindings 32 tests/models/bindings.py ARGS --shard {part} PARTS 4 WATCHES program frontend kernels)
tw_suite(models_large 90 tests/models/large.py SERIAL WATCHES driver packager)
tw_suite(models_lock 115 tests/models/lock.py ARGS --trials 6 WATCHES autotune driver)
tw_suite(predictors 70 tests/autotune/predictors.py PLAIN PYTHON train WATCHES autotune/predictor autotune/features)

foreach(row bf16@60@ tf32@30@ tuned@120@ three_types@40@ accuracy@56@ locked@73@)
  string(REPLACE "@" ";" row "${row}")
  list(POP_FRONT row suite seconds)
  tw_suite(precision_${suite} ${seconds} tests/precision/${suite}.py WATCHES kernels backends/llvm passes)
endforeach()
tw_suite(precision_tiles 40 tests/precision/tiles.py FULL --full TARGETS amx_emulator WATCHES kernels backends/llvm)
tw_suite(precision_special_values 90 tests/precision/special_values.py FULL --full WATCHES backends/llvm backends/cuda ir)
foreach(row quantize@45 integers@10 zero_points@9 tuned@176)
  string(REPLACE "@" ";" row "${row}")
  list(POP_FRONT row suite seconds)
  tw_suite(quantize_${suite} ${seconds} tests/quantize/${suite}.py WATCHES passes/quantization kernels driver/quantize backends/llvm)
endforeach()
tw_suite(mlperf_tiny 20 tests/quantize/mlperf_tiny.py ARGS --part {part} PARTS 4 FULL --full WATCHES passes/quantization kernels backends/llvm)
# Chains of quantized operators
tw_suite(pairs 60 tests/quantize/pairs.py ARGS --share {part} PARTS 3 WATCHES passes/quantization kernels backends/llvm)
foreach(machine x86-64-v2 x86-64-v3 aarch64-generic armv7-generic rv64gc cortex-m4 cortex-m33 cortex-m55)
  tw_suite(pairs_${machine} 60 tests/quantize/pairs.py ARGS --share {part} --target ${machine} PARTS 3 WATCHES passes/quantization)
endforeach()

tw_suite(gpu_networks 165 tests/gpu/networks.py NEEDS cuda opencl WATCHES kernels/device backends/cuda backends/device)
tw_suite(gpu_probes 5 tests/gpu/probes.py NEEDS cuda WATCHES kernels/device backends/cuda)
tw_suite(gpu_budgets 105 tests/gpu/budgets.py ARGS --part {part} PARTS 3 FULL --full NEEDS cuda WATCHES kernels/device backends/cuda)
tw_suite(gpu_dry_run 30 bench/gpu.sh PLAIN ARGS ${CMAKE_CURRENT_BINARY_DIR}/gpu_dry_run --dry-run NEEDS cuda TARGETS fake_libcuda WATCHES bench)
tw_suite(gpu_rival_graphs 120 tests/gpu/rival_graphs.py PLAIN PYTHON train LABELS full)
tw_suite(random_models 100 tests/random/random_models.py ARGS --count 500 NEEDS opencl LABELS always WATCHES ${front} ${code} program runtime)
tw_suite(exports 60 tests/exports/exports.py ARGS --part {part} PARTS 24 PYTHON rivals LABELS installed WATCHES frontend)

# A part of the files, and those of the last commit
tw_suite(tidy 500 scripts/tidy.sh PLAIN ARGS --part {part} PARTS 6 FULL --all NEEDS sanitizers WATCHES support ir frontend passes)

# Test programs and fuzzers built with sanitizers. The seconds count the libraries that they are linked with.
function(tw_sanitized name seconds)
  cmake_parse_arguments(PARSE_ARGV 2 own "" "" "TESTS;TARGETS;WATCHES;NEEDS;ENVIRONMENT")
  list(JOIN own_TESTS "|" tests)
  add_test(NAME sanitized_${name} COMMAND ${CMAKE_SOURCE_DIR}/scripts/sanitized.sh ^\(${tests}\)$ ${own_TARGETS} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  tw_describe(sanitized_${name} ${seconds} WATCHES ${own_WATCHES} NEEDS sanitizers ${own_NEEDS} LABELS suite sanitized SERIAL)
  set_tests_properties(sanitized_${name} PROPERTIES ENVIRONMENT "${own_ENVIRONMENT}" TIMEOUT 5400)
endfunction()
tw_sanitized(front 1400 TESTS support ir frontend passes fuzz_onnx fuzz_sizes TARGETS test_support test_ir test_frontend test_passes fuzz_onnx fuzz_sizes WATCHES ${front} passes)
tw_sanitized(forms 1900 TESTS fuzz_.* TARGETS fuzz WATCHES driver packager autotune)
tw_sanitized(program 2000 TESTS program TARGETS test_program WATCHES program kernels)
tw_sanitized(backends 2400 TESTS backends accuracy packager TARGETS test_backends test_accuracy test_packager WATCHES backends/llvm packager runtime)
tw_sanitized(devices 2600 TESTS opencl vdla TARGETS test_opencl test_vdla NEEDS opencl vdla WATCHES backends/opencl backends/vdla backends/device kernels/device)
tw_sanitized(cuda 3000 TESTS cuda TARGETS test_cuda NEEDS cuda WATCHES backends/cuda backends/device kernels/device)
tw_sanitized(operators 2800 TESTS cli_operators TARGETS test_cli NEEDS opencl vdla WATCHES frontend)
tw_sanitized(cli 3600 TESTS cli TARGETS test_cli NEEDS opencl vdla WATCHES cli driver)
tw_sanitized(autotune 3600 TESTS autotune TARGETS test_autotune WATCHES autotune)
foreach(part RANGE 3)
  tw_sanitized(onnx_${part} 2300 TESTS onnx TARGETS test_onnx ENVIRONMENT TW_ONNX_SHARD=${part}/4 WATCHES frontend)
endforeach()
