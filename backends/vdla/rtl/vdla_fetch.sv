// Reads the stream in bursts, rejects illegal instructions, and passes the others in order to the
// engines' queues. At finish it waits until everything before it is complete.
module vdla_fetch #(
    parameter BIN = 16,
    parameter BOUT = 16,
    parameter BUS = 16
) (
    input  logic              clk,
    input  logic              reset,
    input  logic              start,
    input  logic              halted,
    input  logic [63:0]       address,
    input  logic [31:0]       count,
    // read address and data
    output logic              ar_valid,
    input  logic              ar_ready,
    output logic [63:0]       ar_address,
    output logic [7:0]        ar_beats,  // beats less one
    input  logic              r_valid,
    input  logic [BUS*8-1:0]  r_data,
    input  logic              r_error,
    // to the queues of load, compute, store
    output logic [2:0]        queue_valid,
    input  logic [2:0]        queue_ready,
    output logic [255:0]      insn,
    output logic [31:0]       pc,
    // finish
    input  logic              engines_idle,
    input  logic              tokens_left,
    output logic              done,
    output logic [31:0]       marker,
    output logic              fault,
    output logic [3:0]        fault_code
);
  localparam BEATS = 32 / BUS, LB = $clog2(BUS);
  localparam [3:0] ILLEGAL = 1, BUS_ERROR = 4, TOKENS_LEFT = 6, NO_FINISH = 7;
  localparam [31:0] BURST = 8, ROOM = 16;

  logic running;
  logic [63:0] next_address;
  // Counts of instructions: not yet requested, requested, taken from the buffer
  logic [31:0] to_ask, asked, taken;
  logic [$clog2(BEATS+1)-1:0] beat;
  logic [255:0] pack;
  logic bad_read;

  logic [255:0] full;
  logic buffer_in, buffer_valid, buffer_ready, unused_room, buffer_out_error;
  generate
    if (BEATS == 1) assign full = r_data;
    else assign full = {r_data, pack[255:BUS*8]};
  endgenerate
  assign buffer_in = r_valid && beat == BEATS[$clog2(BEATS+1)-1:0] - 1'b1;
  vdla_fifo #(.WIDTH(257), .DEPTH(16)) buffer (
      .clk(clk), .reset(reset | start), .in_valid(buffer_in), .in_ready(unused_room), .in_data({bad_read | r_error, full}),
      .out_valid(buffer_valid), .out_ready(buffer_ready), .out_data({buffer_out_error, insn}));

  logic [31:0] to_page, burst;
  assign to_page = 32'd128 - {25'b0, next_address[11:5]};
  always_comb begin
    burst = to_ask < BURST ? to_ask : BURST;
    if (to_page < burst) burst = to_page;
  end
  logic [31:0] burst_beats;
  assign burst_beats = burst * BEATS - 1;
  assign ar_valid = running && !halted && to_ask != 0 && (asked - taken) + burst <= ROOM;
  assign ar_address = next_address;
  assign ar_beats = burst_beats[7:0];

  function automatic logic illegal(input logic [255:0] i);
    logic odd, no_count;
    odd = i[32+:LB] != 0 || i[96+:LB] != 0;
    no_count = i[79:64] == 0 || i[143:128] == 0 || i[207:192] == 0;
    case (i[3:0])
      4'd0: illegal = i[7:4] > 3 || i[8] || i[10] || i[15] || i[79:64] == 0 || i[95:80] == 0 || i[143:128] == 0 || i[183:176] == 0
                      || odd || i[144+:LB] != 0 || i[191:184] != 0 || i[255:232] != 0 || (i[7:4] != 0 && i[231:192] != 0);
      4'd1: illegal = i[7:4] > 2 || i[9] || i[11] || i[15] || i[79:64] == 0 || i[95:80] == 0 || odd || i[255:184] != 0
                      || $signed(i[175:168]) > $signed(i[183:176]) || (i[7:4] != 0 && i[159:144] != 0);
      4'd2: illegal = i[7:4] != 0 || no_count;
      4'd3: illegal = (i[7:4] != 1 && i[7:4] != 3) || i[63:48] != 0 || no_count || i[127:112] != 0 || i[191:176] != 0 || i[255:240] != 0
                      || (i[13] && BIN != BOUT);
      4'd4: illegal = i[7:4] > 2 || i[255:12] != 0 || (i[7:4] == 0 && (i[8] || i[10])) || (i[7:4] == 2 && (i[9] || i[11]));
      4'd5: illegal = i[31:4] != 0 || i[255:64] != 0;
      default: illegal = 1;
    endcase
  endfunction

  logic usable, is_finish;
  logic [1:0] engine;
  assign is_finish = insn[3:0] == 5;
  assign engine = insn[3:0] == 0 ? 2'd0 : insn[3:0] == 1 ? 2'd2 : insn[3:0] == 4 ? insn[5:4] : 2'd1;
  assign usable = running && buffer_valid && !halted && !buffer_out_error && !illegal(insn);
  assign queue_valid = {usable && !is_finish && engine == 2, usable && !is_finish && engine == 1, usable && !is_finish && engine == 0};
  assign buffer_ready = (queue_valid & queue_ready) != 0;
  assign done = usable && is_finish && engines_idle;
  assign marker = insn[63:32];
  assign pc = taken;
  always_comb begin
    fault = 0;
    fault_code = ILLEGAL;
    if (running && buffer_valid && buffer_out_error) {fault, fault_code} = {1'b1, BUS_ERROR};
    else if (running && buffer_valid && illegal(insn)) {fault, fault_code} = {1'b1, ILLEGAL};
    else if (done && tokens_left) {fault, fault_code} = {1'b1, TOKENS_LEFT};
    else if (running && taken == count) {fault, fault_code} = {1'b1, NO_FINISH};
  end

  always_ff @(posedge clk) begin
    if (reset) running <= 0;
    else if (start) begin
      running <= 1;
      next_address <= address;
      to_ask <= count;
      asked <= 0;
      taken <= 0;
      beat <= 0;
      bad_read <= 0;
    end else begin
      if (done) running <= 0;
      if (ar_valid && ar_ready) begin
        next_address <= next_address + {32'b0, burst << 5};
        to_ask <= to_ask - burst;
        asked <= asked + burst;
      end
      if (r_valid) begin
        pack <= full;
        beat <= buffer_in ? 0 : beat + 1'b1;
        bad_read <= (bad_read | r_error) && !buffer_in;
      end
      if (buffer_ready) taken <= taken + 1;
    end
  end
endmodule
