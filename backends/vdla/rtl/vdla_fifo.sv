// A queue whose oldest entry is visible at its output. DEPTH is a power of two.
module vdla_fifo #(
    parameter WIDTH = 8,
    parameter DEPTH = 16
) (
    input  logic             clk,
    input  logic             reset,
    input  logic             in_valid,
    output logic             in_ready,
    input  logic [WIDTH-1:0] in_data,
    output logic             out_valid,
    input  logic             out_ready,
    output logic [WIDTH-1:0] out_data
);
  localparam LOG = $clog2(DEPTH);
  logic [WIDTH-1:0] mem[0:DEPTH-1];
  logic [LOG:0] head, tail;
  assign in_ready = (tail - head) != DEPTH[LOG:0];
  assign out_valid = tail != head;
  assign out_data = mem[head[LOG-1:0]];
  always_ff @(posedge clk) begin
    if (in_valid && in_ready) mem[tail[LOG-1:0]] <= in_data;
    if (reset) begin
      head <= 0;
      tail <= 0;
    end else begin
      if (in_valid && in_ready) tail <= tail + 1'b1;
      if (out_valid && out_ready) head <= head + 1'b1;
    end
  end
endmodule
