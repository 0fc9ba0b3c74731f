#include <doctest/doctest.h>

#include <llvm/Support/FormatVariadic.h>

#include "run_pass.h"

using tw::test::run_pass;

TEST_CASE("a batch norm goes into the convolution in front of it") {
  run_pass("fold-batch-norm", R"(graph @t() {
    %x: f32[1, 1, 3, 3] = input
    %w: f32[2, 1, 1, 1] = const [1, 2]
    %b: f32[2] = const [1, 1]
    %s: f32[2] = const [2, 6]
    %t: f32[2] = const [10, 20]
    %m: f32[2] = const [3, 5]
    %v: f32[2] = const [4, 9]
    %c: f32[1, 2, 3, 3] = conv(%x, %w, %b) strides=[1,1] dilations=[1,1] pads=[0,0,0,0]
    %n: f32[1, 2, 3, 3] = batch_norm(%c, %s, %t, %m, %v) epsilon=0
    output %n
  })",
           R"(graph @t() {
    %x: f32[1, 1, 3, 3] = input
    %n_weights: f32[2, 1, 1, 1] = const [1, 4]
    %n_bias: f32[2] = const [8, 12]
    %n: f32[1, 2, 3, 3] = conv(%x, %n_weights, %n_bias) strides=[1,1] dilations=[1,1] pads=[0,0,0,0]
    output %n
  })");
}

TEST_CASE("a grouped transposed convolution is scaled by output channel") {
  run_pass("fold-batch-norm", R"(graph @t() {
    %x: f32[1, 2, 2, 2] = input
    %w: f32[2, 2, 1, 1] = const [1, 2, 3, 4]
    %s: f32[4, 1, 1] = const [1, 10, 100, 1000]
    %c: f32[1, 4, 2, 2] = conv_transpose(%x, %w) strides=[1,1] dilations=[1,1] pads=[0,0,0,0] output_padding=[0,0] group=2
    %n: f32[1, 4, 2, 2] = binary(%c, %s) function=mul
    output %n
  })",
           R"(graph @t() {
    %x: f32[1, 2, 2, 2] = input
    %n_weights: f32[2, 2, 1, 1] = const [1, 20, 300, 4000]
    %n: f32[1, 4, 2, 2] = conv_transpose(%x, %n_weights) strides=[1,1] dilations=[1,1] pads=[0,0,0,0] output_padding=[0,0] group=2
    output %n
  })");
}

TEST_CASE("a chain behind a matmul scales its weights and leaves one add") {
  run_pass("fold-batch-norm", R"(graph @t() {
    %x: f32[2, 2] = input
    %w: f32[2, 2] = const [1, 2, 3, 4]
    %b: f32[2] = const [1, 2]
    %two: f32[] = const [2]
    %s: f32[2] = const [10, 100]
    %a: f32[2, 2] = matmul(%x, %w)
    %c: f32[2, 2] = binary(%a, %b) function=add
    %d: f32[2, 2] = binary(%c, %two) function=mul
    %e: f32[2, 2] = binary(%d, %s) function=mul
    output %e
  })",
           R"(graph @t() {
    %x: f32[2, 2] = input
    %e_weights: f32[2, 2] = const [20, 400, 60, 800]
    %e_shift: f32[2] = const [20, 400]
    %a: f32[2, 2] = matmul(%x, %e_weights)
    %e: f32[2, 2] = binary(%a, %e_shift) function=add
    output %e
  })");
}

TEST_CASE("a bias behind a matmul, and what others read, stay") {
  const char* kept = R"(graph @t() {
    %x: f32[2, 2] = input
    %w: f32[2, 2] = const [1, 2, 3, 4]
    %b: f32[2] = const [1, 2]
    %two: f32[] = const [2]
    %a: f32[2, 2] = matmul(%x, %w)
    %c: f32[2, 2] = binary(%a, %b) function=add
    %d: f32[2, 2] = matmul(%x, %x)
    %e: f32[2, 2] = binary(%d, %two) function=mul
    output %c
    output %d
    output %e
  })";
  run_pass("fold-batch-norm", kept, kept);
}

TEST_CASE("scale and shift in front of an unpadded convolution go into it") {
  run_pass("fold-batch-norm", R"(graph @t() {
    %x: f32[1, 2, 3, 3] = input
    %w: f32[1, 2, 1, 1] = const [3, 5]
    %s: f32[2, 1, 1] = const [2, 10]
    %t: f32[2, 1, 1] = const [1, 7]
    %a: f32[1, 2, 3, 3] = binary(%x, %s) function=mul
    %b: f32[1, 2, 3, 3] = binary(%a, %t) function=add
    %c: f32[1, 1, 3, 3] = conv(%b, %w) strides=[1,1] dilations=[1,1] pads=[0,0,0,0]
    output %c
  })",
           R"(graph @t() {
    %x: f32[1, 2, 3, 3] = input
    %c_weights: f32[1, 2, 1, 1] = const [6, 50]
    %c_bias: f32[1] = const [38]
    %c: f32[1, 1, 3, 3] = conv(%x, %c_weights, %c_bias) strides=[1,1] dilations=[1,1] pads=[0,0,0,0]
    output %c
  })");
}

TEST_CASE("a batch norm with nowhere to go is a mul and an add, chains are shortened") {
  run_pass("fold-batch-norm", R"(graph @t() {
    %x: f32[1, 2, 2] = input
    %s: f32[2] = const [2, 6]
    %t: f32[2] = const [10, 20]
    %m: f32[2] = const [3, 5]
    %v: f32[2] = const [4, 9]
    %half: f32[] = const [0.5]
    %a: f32[1, 2, 2] = batch_norm(%x, %s, %t, %m, %v) epsilon=0
    %b: f32[1, 2, 2] = unary(%a) function=tanh
    %c: f32[1, 2, 2] = binary(%b, %half) function=mul
    %d: f32[1, 2, 2] = binary(%c, %half) function=mul
    output %d
  })",
           R"(graph @t() {
    %x: f32[1, 2, 2] = input
    %d_scale: f32[] = const [0.25]
    %a_scale: f32[2, 1] = const [1, 2]
    %a_shift: f32[2, 1] = const [7, 10]
    %a_scaled: f32[1, 2, 2] = binary(%x, %a_scale) function=mul
    %a: f32[1, 2, 2] = binary(%a_scaled, %a_shift) function=add
    %b: f32[1, 2, 2] = unary(%a) function=tanh
    %d: f32[1, 2, 2] = binary(%b, %d_scale) function=mul
    output %d
  })");
}

TEST_CASE("numbers that would leave the type's range, or cancel, stay as they are") {
  struct Pair {
    const char *function, *first, *second;
  };
  for (const auto& [function, first, second] :
       {Pair{"add", "12582912", "-12582912"}, Pair{"mul", "1e+30", "1e+30"},
        Pair{"mul", "1e-30", "1e-30"}, Pair{"mul", "1e+30", "1e-30"}, Pair{"mul", "1e-30", "1e+30"},
        Pair{"add", "3e+38", "-1.5e+38"}}) {
    CAPTURE(first);
    CAPTURE(second);
    const std::string text = llvm::formatv(R"(graph @t() {{
  %x: f32[4] = input
  %a: f32[] = const [{1}]
  %b: f32[] = const [{2}]
  %y: f32[4] = binary(%x, %a) function={0}
  %z: f32[4] = binary(%y, %b) function={0}
  output %z
})",
                                           function, first, second)
                                 .str();
    run_pass("fold-batch-norm", text.c_str(), text.c_str());
  }
}

TEST_CASE("weights that a scale would make overflow or underflow stay as they are") {
  const auto stays = [](const char* body, const char* type, const char* weight, const char* scale) {
    CAPTURE(body);
    CAPTURE(weight);
    const std::string text = llvm::formatv(body, type, weight, scale).str();
    run_pass("fold-batch-norm", text.c_str(), text.c_str());
  };
  constexpr const char* kConvProducer = R"(graph @t() {{
  %x: {0}[1, 2, 1, 1] = input
  %w: {0}[1, 2, 1, 1] = const [{1}, 0]
  %s: {0}[] = const [{2}]
  %c: {0}[1, 1, 1, 1] = conv(%x, %w) strides=[1,1] dilations=[1,1] pads=[0,0,0,0]
  %y: {0}[1, 1, 1, 1] = binary(%c, %s) function=mul
  output %y
})";
  constexpr const char* kConvConsumer = R"(graph @t() {{
  %x: {0}[1, 2, 1, 1] = input
  %w: {0}[1, 2, 1, 1] = const [{1}, 0]
  %s: {0}[] = const [{2}]
  %c: {0}[1, 2, 1, 1] = binary(%x, %s) function=mul
  %y: {0}[1, 1, 1, 1] = conv(%c, %w) strides=[1,1] dilations=[1,1] pads=[0,0,0,0]
  output %y
})";
  constexpr const char* kMatmulProducer = R"(graph @t() {{
  %x: {0}[1, 2] = input
  %w: {0}[2, 2] = const [1, {1}, 1, 0]
  %s: {0}[] = const [{2}]
  %c: {0}[1, 2] = matmul(%x, %w)
  %y: {0}[1, 2] = binary(%c, %s) function=mul
  output %y
})";
  constexpr const char* kMatmulConsumer = R"(graph @t() {{
  %x: {0}[1, 2] = input
  %w: {0}[2, 2] = const [1, {1}, 1, 0]
  %s: {0}[] = const [{2}]
  %c: {0}[1, 2] = binary(%x, %s) function=mul
  %y: {0}[1, 2] = matmul(%c, %w)
  output %y
})";
  for (const char* body : {kConvProducer, kConvConsumer, kMatmulProducer, kMatmulConsumer}) {
    stays(body, "f16", "1000", "100");
    stays(body, "f16", "0.001", "0.01");
    stays(body, "f32", "1e+25", "1e+25");
    stays(body, "f32", "1e-25", "1e-25");
    stays(body, "f32", "1e+30", "1e-30");
    stays(body, "f32", "1e-30", "1e+30");
  }
}

TEST_CASE("a weight may underflow beside another of its output, or beside its bias") {
  run_pass("fold-batch-norm", R"(graph @t() {
    %x: f32[1, 2] = input
    %w: f32[2, 1] = const [1e-30, 1]
    %s: f32[] = const [1e-09]
    %c: f32[1, 1] = matmul(%x, %w)
    %y: f32[1, 1] = binary(%c, %s) function=mul
    output %y
  })",
           R"(graph @t() {
    %x: f32[1, 2] = input
    %y_weights: f32[2, 1] = const [1.000e-39, 1e-09]
    %y: f32[1, 1] = matmul(%x, %y_weights)
    output %y
  })");
  run_pass("fold-batch-norm", R"(graph @t() {
    %x: f32[1, 1, 1, 1] = input
    %w: f32[1, 1, 1, 1] = const [1]
    %s: f32[1] = const [1e-40]
    %t: f32[1] = const [3]
    %m: f32[1] = const [0]
    %v: f32[1] = const [1]
    %c: f32[1, 1, 1, 1] = conv(%x, %w) strides=[1,1] dilations=[1,1] pads=[0,0,0,0]
    %n: f32[1, 1, 1, 1] = batch_norm(%c, %s, %t, %m, %v) epsilon=0
    output %n
  })",
           R"(graph @t() {
    %x: f32[1, 1, 1, 1] = input
    %n_weights: f32[1, 1, 1, 1] = const [1e-40]
    %n_bias: f32[1] = const [3]
    %n: f32[1, 1, 1, 1] = conv(%x, %n_weights, %n_bias) strides=[1,1] dilations=[1,1] pads=[0,0,0,0]
    output %n
  })");
}
