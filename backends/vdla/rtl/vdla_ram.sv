// A memory with one write port and one synchronous read port. A read in the same cycle as a write
// to its address gives the old value.
module vdla_ram #(
    parameter WIDTH = 8,
    parameter LOG_DEPTH = 4
) (
    input  logic                 clk,
    input  logic                 write,
    input  logic [LOG_DEPTH-1:0] write_address,
    input  logic [WIDTH-1:0]     write_data,
    input  logic                 read,
    input  logic [LOG_DEPTH-1:0] read_address,
    output logic [WIDTH-1:0]     read_data
);
  logic [WIDTH-1:0] mem[0:(1<<LOG_DEPTH)-1];
  always_ff @(posedge clk) begin
    if (write) mem[write_address] <= write_data;
    if (read) read_data <= mem[read_address];
  end
endmodule
