// One output of the array: the product of N int8 pairs and a tree of two-input sums, with a
// register after each level. The result comes 1 + log2(N) cycles after its operands.
module vdla_dot #(
    parameter N = 16
) (
    input  logic           clk,
    input  logic [N*8-1:0] x,
    input  logic [N*8-1:0] w,
    output logic [31:0]    sum
);
  localparam LEVELS = $clog2(N), W = 16 + LEVELS;
  logic [(2*N-1)*W-1:0] node;  // level 0 first
  genvar i, l;
  generate
    for (i = 0; i < N; i = i + 1) begin : products
      logic signed [15:0] p;
      assign p = $signed(x[i*8+:8]) * $signed(w[i*8+:8]);
      always_ff @(posedge clk) node[i*W+:W] <= {{LEVELS{p[15]}}, p};
    end
    for (l = 1; l <= LEVELS; l = l + 1) begin : levels
      for (i = 0; i < (N >> l); i = i + 1) begin : sums
        localparam FROM = 2 * N - (2 * N >> (l - 1)), TO = 2 * N - (2 * N >> l);
        always_ff @(posedge clk) node[(TO+i)*W+:W] <= node[(FROM+2*i)*W+:W] + node[(FROM+2*i+1)*W+:W];
      end
    end
  endgenerate
  assign sum = {{(32 - W) {node[(2*N-1)*W-1]}}, node[(2*N-2)*W+:W]};
endmodule
