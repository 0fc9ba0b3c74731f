// Reads accumulators when compute leaves their bank free, requantizes LANES outputs a cycle, and
// writes rows to DRAM. An instruction is complete when all its write responses have arrived.
module vdla_store #(
    parameter BOUT = 16,
    parameter BUS = 16,
    parameter LANES = 4,
    parameter LOG_ACC = 11,
    parameter LOG_PRM = 6
) (
    input  logic               clk,
    input  logic               reset,
    input  logic               q_valid,
    output logic               q_take,
    input  logic [255:0]       q_insn,
    input  logic [31:0]        q_pc,
    input  logic               prev_some,
    output logic               push_prev,
    input  logic [64*8-1:0]    bases,
    output logic               acc_read,
    input  logic               acc_grant,
    output logic [LOG_ACC-1:0] acc_address,
    input  logic [BOUT*32-1:0] acc_data,
    output logic               prm_read,
    output logic [LOG_PRM-1:0] prm_address,
    input  logic [BOUT*64-1:0] prm_data,
    output logic               aw_valid,
    input  logic               aw_ready,
    output logic [63:0]        aw_address,
    output logic [7:0]         aw_beats,
    output logic               w_valid,
    input  logic               w_ready,
    output logic [BUS*8-1:0]   w_data,
    output logic               w_last,
    input  logic               b_valid,
    input  logic               b_error,
    output logic               busy,
    output logic               fault,
    output logic [3:0]         fault_code,
    output logic [31:0]        fault_pc
);
  localparam [3:0] RANGE = 2, BUS_ERROR = 4;
  localparam LB = $clog2(BUS), L_OUT = $clog2(BOUT / BUS), L_RAW = $clog2(4 * BOUT / BUS);
  localparam GROUPS = BOUT / LANES, RAW_BEATS = 4 * BOUT / BUS, STEPS = GROUPS > RAW_BEATS ? GROUPS : RAW_BEATS;
  localparam OUT_DEPTH = 4 * RAW_BEATS > 16 ? 4 * RAW_BEATS : 16;
  localparam LS = $clog2(STEPS + 1), PACK = BUS > LANES ? BUS : LANES;

  logic active, ready_prm;
  logic [255:0] insn;
  logic [31:0] pc;
  logic is_sync, raw, sat;
  assign is_sync = insn[3:0] == 4;
  assign raw = insn[5:4] == 1;
  assign sat = insn[5:4] == 2;
  assign fault_pc = pc;
  assign busy = active;

  // Write addresses: bursts of at most 256 beats that stay in a page of 4 KiB.
  logic aw_done;
  logic [15:0] aw_y;
  logic [63:0] row, address, first;
  logic [31:0] beats, burst, to_page, row_beats, q_row_beats;
  logic lens_ready, lens_valid, lens_take, asked;
  logic [8:0] len;
  logic [16:0] outstanding;
  assign first = bases[q_insn[14:12]*64+:64] + {32'b0, q_insn[63:32]};
  assign row_beats = {16'b0, insn[95:80]} << (raw ? L_RAW : L_OUT);
  assign q_row_beats = {16'b0, q_insn[95:80]} << (q_insn[5:4] == 1 ? L_RAW : L_OUT);
  assign to_page = (32'd4096 - {20'b0, address[11:0]}) >> LB;
  always_comb begin
    burst = beats < 256 ? beats : 32'd256;
    if (to_page < burst) burst = to_page;
  end
  assign aw_valid = active && !is_sync && !aw_done && lens_ready;
  assign aw_address = address;
  assign aw_beats = burst[7:0] - 1'b1;
  assign asked = aw_valid && aw_ready;
  vdla_fifo #(.WIDTH(9), .DEPTH(16)) lens (
      .clk(clk), .reset(reset), .in_valid(asked), .in_ready(lens_ready), .in_data(burst[8:0]),
      .out_valid(lens_valid), .out_ready(lens_take), .out_data(len));

  // Accumulators: one element ahead of the one being sent.
  logic read_done, reading, hold_valid, hold_free, out_of_range;
  logic [15:0] x, y;
  logic [17:0] element, acc_row;
  logic [BOUT*32-1:0] hold;
  logic [LS-1:0] group, groups;
  logic feed, room;
  assign out_of_range = element >= (18'd1 << LOG_ACC);
  assign acc_read = active && !is_sync && ready_prm && !read_done && !reading && hold_free && !out_of_range;
  assign acc_address = element[LOG_ACC-1:0];
  assign groups = raw ? RAW_BEATS[LS-1:0] : GROUPS[LS-1:0];
  assign feed = hold_valid && (group != 0 || room);  // an element is sent without a pause
  assign hold_free = !hold_valid || (feed && group == groups - 2'd2);

  logic [BOUT*64-1:0] prm;
  logic [1:0] prm_wait;
  assign prm_read = q_take;
  assign prm_address = q_insn[144+:LOG_PRM];
  logic prm_outside;
  assign prm_outside = {1'b0, insn[159:144]} >= (17'd1 << LOG_PRM);

  // The lanes, and the bytes that leave them.
  logic [LANES*8-1:0] lane_out;
  logic [2:0] in_lanes;
  genvar l;
  generate
    for (l = 0; l < LANES; l = l + 1) begin : lanes
      vdla_requant lane (
          .clk(clk), .bypass(sat), .acc(hold[l*32+:32]), .param(prm[l*64+:64]), .zero_point(insn[167:160]), .low(insn[175:168]),
          .high(insn[183:176]), .out(lane_out[l*8+:8]));
    end
  endgenerate
  logic [PACK*8-1:0] pack, packed_next;
  logic [7:0] filled;  // bytes in pack
  generate
    if (BUS > LANES) assign packed_next = {lane_out, pack[PACK*8-1:LANES*8]};
    else assign packed_next = lane_out;
  endgenerate
  logic beat_in, beat_done, out_ready_unused, out_valid;
  logic [BUS*8-1:0] beat_data;
  logic [15:0] used;
  assign beat_done = in_lanes[2] && filled + LANES[7:0] >= BUS[7:0];
  assign beat_in = raw ? feed : beat_done;
  assign beat_data = raw ? hold[BUS*8-1:0] : packed_next[BUS*8-1:0];
  assign room = used < OUT_DEPTH / 2;
  vdla_fifo #(.WIDTH(BUS*8), .DEPTH(OUT_DEPTH)) beats_out (
      .clk(clk), .reset(reset), .in_valid(beat_in), .in_ready(out_ready_unused), .in_data(beat_data),
      .out_valid(out_valid), .out_ready(w_ready && lens_valid), .out_data(w_data));
  logic [8:0] sent;
  assign w_valid = out_valid && lens_valid;
  assign w_last = sent == len - 1'b1;
  assign lens_take = w_valid && w_ready && w_last;

  logic complete;
  assign complete = active && (is_sync || (aw_done && read_done && !reading && !hold_valid && in_lanes == 0 && !out_valid && outstanding == 0));
  assign push_prev = complete && insn[10];
  assign q_take = q_valid && !active && (!q_insn[8] || prev_some);
  assign fault = (active && !is_sync && ((!read_done && out_of_range) || (insn[5:4] == 0 && prm_outside))) || (b_valid && b_error);
  assign fault_code = b_valid && b_error ? BUS_ERROR : RANGE;

  always_ff @(posedge clk) begin
    if (reset) begin
      active <= 0;
      hold_valid <= 0;
      reading <= 0;
      in_lanes <= 0;
      used <= 0;
      sent <= 0;
      filled <= 0;
      outstanding <= 0;
      ready_prm <= 0;
    end else begin
      outstanding <= outstanding + {16'b0, asked} - {16'b0, b_valid};
      used <= used + {15'b0, beat_in} - {15'b0, w_valid && w_ready};
      if (w_valid && w_ready) sent <= w_last ? 0 : sent + 1'b1;
      in_lanes <= {in_lanes[1:0], feed && !raw};
      reading <= acc_read && acc_grant;
      ready_prm <= active && !complete;
      if (in_lanes[2]) begin
        pack <= packed_next;
        filled <= beat_done ? 0 : filled + LANES[7:0];
      end
      if (asked) begin
        beats <= beats - burst;
        address <= address + {32'b0, burst << LB};
        if (beats == burst) begin
          aw_y <= aw_y + 1'b1;
          row <= row + {{32{insn[127]}}, insn[127:96]};
          address <= row + {{32{insn[127]}}, insn[127:96]};
          beats <= row_beats;
          if (aw_y == insn[79:64] - 1'b1) aw_done <= 1;
        end
      end
      if (acc_read && acc_grant) begin
        x <= x + 1'b1;
        element <= element + 1'b1;
        if (x == insn[95:80] - 1'b1) begin
          x <= 0;
          y <= y + 1'b1;
          element <= acc_row + {2'b0, insn[143:128]};
          acc_row <= acc_row + {2'b0, insn[143:128]};
          if (y == insn[79:64] - 1'b1) read_done <= 1;
        end
      end
      if (feed) begin
        group <= group + 1'b1;
        hold <= raw ? hold >> (BUS * 8) : hold >> (LANES * 32);
        prm <= {prm[LANES*64-1:0], prm} >> (LANES * 64);
        if (group == groups - 1'b1) hold_valid <= 0;
      end
      if (active && !ready_prm) prm <= prm_data;
      if (reading) begin
        hold <= acc_data;
        hold_valid <= 1;
        group <= 0;
      end
      if (complete) active <= 0;
      if (q_take) begin
        active <= 1;
        insn <= q_insn;
        pc <= q_pc;
        row <= first;
        address <= first;
        beats <= q_row_beats;
        aw_y <= 0;
        aw_done <= 0;
        x <= 0;
        y <= 0;
        element <= {2'b0, q_insn[31:16]};
        acc_row <= {2'b0, q_insn[31:16]};
        read_done <= 0;
      end
    end
  end
endmodule
