// Three-dimensional strided loads with pads. The front requests rows from DRAM, already for the
// next instruction while data of this one still arrive. The back packs beats into elements, writes
// them in order, and pushes tokens after the last.
module vdla_load #(
    parameter BIN = 16,
    parameter BOUT = 16,
    parameter BUS = 16,
    parameter LOG_INP = 11,
    parameter LOG_WGT = 9,
    parameter LOG_ACC = 11,
    parameter LOG_PRM = 6
) (
    input  logic                  clk,
    input  logic                  reset,
    input  logic                  q_valid,
    output logic                  q_take,
    input  logic [255:0]          q_insn,
    input  logic [31:0]           q_pc,
    input  logic                  next_some,
    output logic                  push_next,
    input  logic [64*8-1:0]       bases,
    output logic                  ar_valid,
    input  logic                  ar_ready,
    output logic [63:0]           ar_address,
    output logic [7:0]            ar_beats,
    input  logic                  r_valid,
    output logic                  r_ready,
    input  logic [BUS*8-1:0]      r_data,
    input  logic                  r_error,
    output logic                  inp_write,
    output logic                  wgt_write,
    output logic                  acc_write,
    input  logic                  acc_grant,
    output logic                  prm_write,
    output logic [15:0]           write_address,
    output logic [BIN*8-1:0]      inp_data,
    output logic [BIN*BOUT*8-1:0] wgt_data,
    output logic [BOUT*32-1:0]    acc_data,
    output logic [BOUT*64-1:0]    prm_data,
    output logic                  busy,
    output logic                  fault,
    output logic [3:0]            fault_code,
    output logic [31:0]           fault_pc
);
  localparam [3:0] RANGE = 2, BUS_ERROR = 4;
  localparam LB = $clog2(BUS);
  localparam L_INP = $clog2(BIN / BUS), L_WGT = $clog2(BIN * BOUT / BUS), L_ACC = $clog2(4 * BOUT / BUS), L_PRM = $clog2(8 * BOUT / BUS);
  localparam WIDE = BIN * BOUT * 8 > BOUT * 64 ? BIN * BOUT * 8 : BOUT * 64;

  function automatic logic [3:0] log_beats(input logic [1:0] scope);
    case (scope)
      2'd0: log_beats = L_INP;
      2'd1: log_beats = L_WGT;
      2'd2: log_beats = L_ACC;
      default: log_beats = L_PRM;
    endcase
  endfunction

  // Front.
  localparam [2:0] IDLE = 0, ROW = 1, RUN = 2, TAIL = 3, LAST = 4;
  localparam [1:0] D_START = 0, D_PAD = 1, D_DATA = 2, D_END = 3;
  logic [2:0] state;
  logic [255:0] insn;
  logic [63:0] plane, row, run, address;
  logic [16:0] y;
  logic [15:0] z, runs;
  logic [31:0] beats, burst, to_page;
  logic d_valid, d_ready;
  logic [59:0] d_in;

  logic [1:0] scope;
  logic [16:0] rows, columns;
  logic pad_row, take, row_end, last_row, single;
  logic [31:0] run_beats;
  assign scope = insn[5:4];
  assign rows = {1'b0, insn[79:64]} + {9'b0, insn[199:192]} + {9'b0, insn[207:200]};
  assign columns = {1'b0, insn[95:80]} + {9'b0, insn[215:208]} + {9'b0, insn[223:216]};
  assign pad_row = y < {9'b0, insn[199:192]} || y >= {9'b0, insn[199:192]} + {1'b0, insn[79:64]};
  assign single = insn[183:176] == 1;  // a row is one run of beats
  assign run_beats = (single ? {16'b0, insn[95:80]} : 32'd1) << log_beats(scope);
  assign last_row = y == rows - 1'b1 && z == insn[143:128] - 1'b1;
  assign take = state == IDLE && q_valid && d_ready && (!q_insn[9] || next_some);
  assign q_take = take;

  assign to_page = (32'd4096 - {20'b0, address[11:0]}) >> LB;
  always_comb begin
    burst = beats < 256 ? beats : 32'd256;
    if (to_page < burst) burst = to_page;
  end
  assign ar_valid = state == RUN && d_ready;
  assign ar_address = address;
  assign ar_beats = burst[7:0] - 1'b1;

  logic asked, run_end;
  assign asked = ar_valid && ar_ready;
  assign run_end = asked && beats == burst;
  assign row_end = d_ready && ((state == ROW && pad_row) || state == TAIL) || (run_end && runs == 1 && insn[223:216] == 0);
  always_comb begin
    d_valid = 0;
    d_in = 0;
    case (state)
      IDLE: begin
        d_valid = take;
        d_in = {q_insn[231:224], q_pc, q_insn[31:16], q_insn[5:4], D_START};
      end
      ROW: begin
        d_valid = pad_row || insn[215:208] != 0;
        d_in = {41'b0, pad_row ? columns : {9'b0, insn[215:208]}, D_PAD};
      end
      RUN: begin
        d_valid = asked;
        d_in = {41'b0, burst[16:0], D_DATA};
      end
      TAIL: begin
        d_valid = 1;
        d_in = {41'b0, 9'b0, insn[223:216], D_PAD};
      end
      LAST: begin
        d_valid = 1;
        d_in = {57'b0, insn[11], D_END};
      end
      default: ;
    endcase
  end

  logic [63:0] first, next_row, next_plane;
  assign first = bases[q_insn[14:12]*64+:64] + {32'b0, q_insn[63:32]};
  assign next_row = row + {{32{insn[127]}}, insn[127:96]};
  assign next_plane = plane + {{32{insn[175]}}, insn[175:144]};
  always_ff @(posedge clk) begin
    if (reset) state <= IDLE;
    else
      case (state)
        IDLE:
        if (take) begin
          insn <= q_insn;
          plane <= first;
          row <= first;
          y <= 0;
          z <= 0;
          state <= q_insn[3:0] == 4 ? LAST : ROW;
        end
        ROW:
        if (!pad_row && (insn[215:208] == 0 || d_ready)) begin
          run <= row;
          address <= row;
          runs <= single ? 16'd1 : insn[95:80];
          beats <= run_beats;
          state <= RUN;
        end
        RUN:
        if (asked) begin
          beats <= beats - burst;
          address <= address + {32'b0, burst << LB};
          if (run_end && runs != 1) begin
            runs <= runs - 1'b1;
            run <= run + ({56'b0, insn[183:176]} << (log_beats(scope) + LB));
            address <= run + ({56'b0, insn[183:176]} << (log_beats(scope) + LB));
            beats <= run_beats;
          end else if (run_end) state <= TAIL;
        end
        LAST: if (d_ready) state <= IDLE;
        default: ;
      endcase
    if (row_end && !reset) begin
      if (!pad_row) row <= next_row;
      y <= y + 1'b1;
      if (y == rows - 1'b1) begin
        y <= 0;
        z <= z + 1'b1;
        plane <= next_plane;
        row <= next_plane;
      end
      state <= last_row ? LAST : ROW;
    end
  end

  // Back.
  logic b_valid, b_ready;
  logic [59:0] b;
  vdla_fifo #(.WIDTH(60), .DEPTH(16)) segments (
      .clk(clk), .reset(reset), .in_valid(d_valid), .in_ready(d_ready), .in_data(d_in),
      .out_valid(b_valid), .out_ready(b_ready), .out_data(b));
  logic [1:0] b_scope;
  logic [16:0] element, left;  // left: elements left of the segment, once begun
  logic [7:0] pad_value;
  logic [31:0] b_pc;
  logic begun;
  logic [15:0] beat, element_beats;
  logic [WIDE-1:0] pack, full;
  logic [16:0] remaining;
  logic padding, reading, whole, write, step;
  assign element_beats = 16'd1 << log_beats(b_scope);
  assign full = {r_data, pack[WIDE-1:BUS*8]};
  assign remaining = begun ? left : b[18:2];
  assign padding = b_valid && b[1:0] == D_PAD;
  assign reading = b_valid && b[1:0] == D_DATA;
  assign whole = beat == element_beats - 1'b1;
  assign write = padding || (reading && r_valid && whole);
  assign r_ready = reading && (b_scope != 2 || !whole || acc_grant);
  assign step = padding || (r_valid && r_ready);
  assign b_ready = b_valid && (b[1:0] == D_START || b[1:0] == D_END || (step && remaining == 1));
  assign inp_write = write && b_scope == 0 && !fault;
  assign wgt_write = write && b_scope == 1 && !fault;
  assign acc_write = write && b_scope == 2 && !fault;
  assign prm_write = write && b_scope == 3 && !fault;
  assign write_address = element[15:0];
  assign inp_data = padding ? {BIN{pad_value}} : full[WIDE-1-:BIN*8];
  assign wgt_data = full[WIDE-1-:BIN*BOUT*8];
  assign acc_data = full[WIDE-1-:BOUT*32];
  assign prm_data = full[WIDE-1-:BOUT*64];
  assign push_next = b_valid && b[1:0] == D_END && b[2];
  assign busy = state != IDLE || b_valid;

  logic outside;
  always_comb
    case (b_scope)
      2'd0: outside = element >= (17'd1 << LOG_INP);
      2'd1: outside = element >= (17'd1 << LOG_WGT);
      2'd2: outside = element >= (17'd1 << LOG_ACC);
      default: outside = element >= (17'd1 << LOG_PRM);
    endcase
  assign fault = (write && outside) || (reading && r_valid && r_error);
  assign fault_code = reading && r_valid && r_error ? BUS_ERROR : RANGE;
  assign fault_pc = b_pc;

  always_ff @(posedge clk) begin
    if (reset) begin
      begun <= 0;
      beat <= 0;
    end else begin
      if (b_valid && b[1:0] == D_START) begin
        b_scope <= b[3:2];
        element <= {1'b0, b[19:4]};
        b_pc <= b[51:20];
        pad_value <= b[59:52];
      end
      if (step) begin
        left <= remaining - 1'b1;
        begun <= remaining != 1;
        if (write) element <= element + 1'b1;
        if (reading) begin
          pack <= full;
          beat <= whole ? 0 : beat + 1'b1;
        end
      end
    end
  end
endmodule
