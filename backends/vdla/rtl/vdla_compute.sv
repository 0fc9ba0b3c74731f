// Matrix products and vector operations: three affine loops, one step a cycle. Accumulators are
// read and written in the last stage, with a bypass for the step before. Instructions follow each
// other without draining; tokens travel down the pipe with the last step. An alu instruction with
// an accumulator as source takes one step at a time.
module vdla_compute #(
    parameter BIN = 16,
    parameter BOUT = 16,
    parameter LOG_INP = 11,
    parameter LOG_WGT = 9,
    parameter LOG_ACC = 11
) (
    input  logic                  clk,
    input  logic                  reset,
    input  logic                  q_valid,
    output logic                  q_take,
    input  logic [255:0]          q_insn,
    input  logic [31:0]           q_pc,
    input  logic                  prev_some,
    input  logic                  next_some,
    output logic                  push_prev,
    output logic                  push_next,
    output logic                  inp_read,
    output logic [LOG_INP-1:0]    inp_address,
    input  logic [BIN*8-1:0]      inp_data,
    output logic                  wgt_read,
    output logic [LOG_WGT-1:0]    wgt_address,
    input  logic [BIN*BOUT*8-1:0] wgt_data,
    output logic                  acc_read,
    output logic [LOG_ACC-1:0]    acc_read_address,
    input  logic [BOUT*32-1:0]    acc_read_data,
    output logic                  acc_write,
    output logic [LOG_ACC-1:0]    acc_write_address,
    output logic [BOUT*32-1:0]    acc_write_data,
    output logic                  busy,
    output logic                  gemm_step,
    output logic                  alu_step,
    output logic                  fault,
    output logic [3:0]            fault_code,
    output logic [31:0]           fault_pc,
    output logic [31:0]           push_pc
);
  localparam [3:0] RANGE = 2;
  localparam LAST = 2 + $clog2(BIN);  // stages 0 (SRAM read) .. LAST (accumulate)

  // Issue: counters and addresses of the three loops. a is the accumulator or dst, i the input or
  // src, w the weight.
  logic active;
  logic [255:0] insn;
  logic [31:0] pc;
  logic [15:0] n0, n1, n2;
  logic signed [17:0] a0, a1, a2, i0, i1, i2, w0, w1, w2;
  logic is_gemm, from_acc, is_sync, end0, end1, end2, first, pipe_empty, issue, last;
  logic src_wait;  // an accumulator source has been requested
  assign is_gemm = insn[3:0] == 2;
  assign is_sync = insn[3:0] == 4;
  assign from_acc = insn[3:0] == 3 && !insn[13];
  assign end0 = n0 == insn[79:64] - 1'b1;
  assign end1 = n1 == insn[143:128] - 1'b1;
  assign end2 = n2 == insn[207:192] - 1'b1;
  assign last = is_sync || (end0 && end1 && end2);
  always_comb begin
    if (is_gemm) first = !(insn[13] && n0 != 0) && !(insn[14] && n1 != 0) && !(insn[15] && n2 != 0);
    else first = !(insn[14] && n1 != 0) && !(insn[15] && n2 != 0);
  end
  logic src_read;
  assign src_read = active && from_acc && pipe_empty && !src_wait;
  assign issue = active && (from_acc ? src_wait : 1'b1);
  assign q_take = q_valid && (!active || (issue && last)) && (!q_insn[8] || prev_some) && (!q_insn[9] || next_some);

  logic a_bad, i_bad, w_bad;
  assign a_bad = a2 < 0 || a2 >= (18'sd1 << LOG_ACC);
  assign i_bad = i2 < 0 || i2 >= (from_acc ? 18'sd1 << LOG_ACC : 18'sd1 << LOG_INP);
  assign w_bad = w2 < 0 || w2 >= (18'sd1 << LOG_WGT);
  assign fault = active && !is_sync && (a_bad || i_bad || (is_gemm && w_bad));
  assign fault_code = RANGE;
  assign fault_pc = pc;
  assign inp_read = issue;
  assign inp_address = i2[LOG_INP-1:0];
  assign wgt_read = issue && is_gemm;
  assign wgt_address = w2[LOG_WGT-1:0];
  assign gemm_step = issue && is_gemm;
  assign alu_step = issue && insn[3:0] == 3;

  function automatic logic signed [17:0] wide(input logic [15:0] stride);
    wide = {{2{stride[15]}}, stride};
  endfunction
  always_ff @(posedge clk) begin
    if (reset) begin
      active <= 0;
      src_wait <= 0;
    end else begin
      if (src_read) src_wait <= 1;
      if (issue) begin
        src_wait <= 0;
        n2 <= n2 + 1'b1;
        a2 <= a2 + wide(insn[223:208]);
        i2 <= i2 + wide(insn[239:224]);
        w2 <= w2 + wide(insn[255:240]);
        if (end2) begin
          n2 <= 0;
          n1 <= n1 + 1'b1;
          {a1, a2} <= {2{a1 + wide(insn[159:144])}};
          {i1, i2} <= {2{i1 + wide(insn[175:160])}};
          {w1, w2} <= {2{w1 + wide(insn[191:176])}};
          if (end1) begin
            n1 <= 0;
            n0 <= n0 + 1'b1;
            {a0, a1, a2} <= {3{a0 + wide(insn[95:80])}};
            {i0, i1, i2} <= {3{i0 + wide(insn[111:96])}};
            {w0, w1, w2} <= {3{w0 + wide(insn[127:112])}};
          end
        end
        if (last) active <= 0;
      end
      if (q_take) begin
        active <= 1;
        insn <= q_insn;
        pc <= q_pc;
        {n0, n1, n2} <= 0;
        {a0, a1, a2} <= {3{2'b0, q_insn[31:16]}};
        {i0, i1, i2} <= {3{2'b0, q_insn[47:32]}};
        {w0, w1, w2} <= {3{2'b0, q_insn[63:48]}};
      end
    end
  end

  // The pipe. A step carries {pc, push_next, push_prev, from_acc, max, gemm, replace, writes,
  // address}.
  localparam M = LOG_ACC + 7 + 32;
  logic [LAST*M-1:0] meta;  // stage s + 1 is at index s
  logic [LAST-1:0] live;
  logic [M-1:0] meta_in, early, late;
  assign meta_in = {pc, insn[11] && last, insn[10] && last, from_acc, insn[7:4] == 3, is_gemm, insn[12] && first, !is_sync && !fault,
                    a2[LOG_ACC-1:0]};
  always_ff @(posedge clk) begin
    live <= reset ? 0 : {live[LAST-2:0], issue};
    meta <= {meta[(LAST-1)*M-1:0], meta_in};
  end
  assign pipe_empty = live == 0;
  assign early = meta[(LAST-2)*M+:M];
  assign late = meta[(LAST-1)*M+:M];
  assign busy = active || !pipe_empty;

  logic [BOUT*32-1:0] source, held;  // held: the accumulator used as source
  logic took_source;
  logic [LAST*BIN*8-1:0] passed;     // inputs passing the array; first: inp_data one stage later
  always_ff @(posedge clk) begin
    took_source <= src_read;
    if (took_source) held <= acc_read_data;
    passed <= {passed[(LAST-1)*BIN*8-1:0], inp_data};
  end
  genvar o;
  generate
    for (o = 0; o < BOUT; o = o + 1) begin : outputs
      logic [31:0] product;
      vdla_dot #(.N(BIN)) dot (.clk(clk), .x(inp_data), .w(wgt_data[o*BIN*8+:BIN*8]), .sum(product));
      if (o < BIN) begin : lane
        logic [7:0] x;
        assign x = passed[(LAST-2)*BIN*8+o*8+:8];
        assign source[o*32+:32] = late[LOG_ACC+2] ? product : late[LOG_ACC+4] ? held[o*32+:32] : {{24{x[7]}}, x};
      end else begin : no_lane
        assign source[o*32+:32] = late[LOG_ACC+2] ? product : held[o*32+:32];
      end
    end
  endgenerate

  // Accumulate: read in the stage before, then add or compare and write in the last.
  logic early_read, bypass;
  logic [BOUT*32-1:0] old, written;
  assign early_read = live[LAST-2] && early[LOG_ACC] && !early[LOG_ACC+1];
  assign acc_read = early_read || src_read;
  assign acc_read_address = early_read ? early[LOG_ACC-1:0] : i2[LOG_ACC-1:0];
  assign acc_write = live[LAST-1] && late[LOG_ACC];
  assign acc_write_address = late[LOG_ACC-1:0];
  assign old = bypass ? written : acc_read_data;
  always_comb
    for (int k = 0; k < BOUT; k = k + 1) begin
      if (late[LOG_ACC+1]) acc_write_data[k*32+:32] = source[k*32+:32];
      else if (late[LOG_ACC+3] && !late[LOG_ACC+2])
        acc_write_data[k*32+:32] = $signed(old[k*32+:32]) > $signed(source[k*32+:32]) ? old[k*32+:32] : source[k*32+:32];
      else acc_write_data[k*32+:32] = old[k*32+:32] + source[k*32+:32];
    end
  always_ff @(posedge clk) begin
    bypass <= acc_write && early[LOG_ACC-1:0] == late[LOG_ACC-1:0];
    written <= acc_write_data;
    push_prev <= !reset && live[LAST-1] && late[LOG_ACC+5];
    push_next <= !reset && live[LAST-1] && late[LOG_ACC+6];
    push_pc <= late[M-1-:32];
  end
endmodule
