// The accumulators: two banks by the highest address bit, each with one read and one write port.
// Compute has priority on both.
module vdla_acc #(
    parameter WIDTH = 512,
    parameter LOG_ACC = 11
) (
    input  logic               clk,
    input  logic               compute_read,
    input  logic [LOG_ACC-1:0] compute_read_address,
    output logic [WIDTH-1:0]   compute_read_data,
    input  logic               compute_write,
    input  logic [LOG_ACC-1:0] compute_write_address,
    input  logic [WIDTH-1:0]   compute_write_data,
    input  logic               load_write,
    output logic               load_grant,
    input  logic [LOG_ACC-1:0] load_write_address,
    input  logic [WIDTH-1:0]   load_write_data,
    input  logic               store_read,
    output logic               store_grant,
    input  logic [LOG_ACC-1:0] store_read_address,
    output logic [WIDTH-1:0]   store_read_data
);
  localparam TOP = LOG_ACC - 1;
  logic [2*WIDTH-1:0] data;
  logic compute_bank, store_bank;
  assign load_grant = !(compute_write && compute_write_address[TOP] == load_write_address[TOP]);
  assign store_grant = !(compute_read && compute_read_address[TOP] == store_read_address[TOP]);
  genvar b;
  generate
    for (b = 0; b < 2; b = b + 1) begin : bank
      logic c_read, s_read, c_write, l_write;
      assign c_read = compute_read && compute_read_address[TOP] == b;
      assign s_read = store_read && store_read_address[TOP] == b;
      assign c_write = compute_write && compute_write_address[TOP] == b;
      assign l_write = load_write && load_write_address[TOP] == b;
      vdla_ram #(.WIDTH(WIDTH), .LOG_DEPTH(TOP)) ram (
          .clk(clk), .write(c_write | l_write), .write_address(c_write ? compute_write_address[TOP-1:0] : load_write_address[TOP-1:0]),
          .write_data(c_write ? compute_write_data : load_write_data), .read(c_read | s_read),
          .read_address(c_read ? compute_read_address[TOP-1:0] : store_read_address[TOP-1:0]), .read_data(data[b*WIDTH+:WIDTH]));
    end
  endgenerate
  always_ff @(posedge clk) begin
    if (compute_read) compute_bank <= compute_read_address[TOP];
    if (store_read && store_grant) store_bank <= store_read_address[TOP];
  end
  assign compute_read_data = compute_bank ? data[WIDTH+:WIDTH] : data[0+:WIDTH];
  assign store_read_data = store_bank ? data[WIDTH+:WIDTH] : data[0+:WIDTH];
endmodule
