// The VDLA: fetch, three engines with their queues, token counters, memories, control registers,
// one DRAM port. The DRAM port has separate channels for read addresses, read data, write
// addresses, write data and write responses, as AXI4 has. Beats have BUS bytes, bursts stay within
// 4 KiB, and responses of one id come in order. docs/internals/vdla.md describes the registers.
module vdla_core #(
    parameter BIN = 16,
    parameter BOUT = 16,
    parameter BUS = 16,
    parameter LANES = 4,
    parameter QUEUE = 16,
    parameter LOG_INP = 11,
    parameter LOG_WGT = 9,
    parameter LOG_ACC = 11,
    parameter LOG_PRM = 6
) (
    input  logic             clk,
    input  logic             reset,
    input  logic             csr_write,
    input  logic [7:0]       csr_address,
    input  logic [31:0]      csr_wdata,
    output logic [31:0]      csr_rdata,
    output logic             irq,
    output logic             ar_valid,
    input  logic             ar_ready,
    output logic [63:0]      ar_address,
    output logic [7:0]       ar_beats,   // beats less one
    output logic             ar_id,      // 0 fetch, 1 load
    input  logic             r_valid,
    output logic             r_ready,
    input  logic [BUS*8-1:0] r_data,
    input  logic             r_id,
    input  logic             r_error,
    output logic             aw_valid,
    input  logic             aw_ready,
    output logic [63:0]      aw_address,
    output logic [7:0]       aw_beats,
    output logic             w_valid,
    input  logic             w_ready,
    output logic [BUS*8-1:0] w_data,
    output logic             w_last,
    input  logic             b_valid,
    input  logic             b_error
);
  localparam [3:0] OVERFLOW = 3, DEADLOCK = 5;

  // Control registers.
  logic start, running, is_done, clear;
  logic [63:0] stream;
  logic [31:0] count, watchdog, marker;
  logic [64*8-1:0] bases;
  logic [3:0] error;
  logic [31:0] error_pc;
  logic core_reset, halted;
  assign core_reset = reset | clear;
  assign halted = error != 0;
  assign irq = is_done | halted;

  // Queues.
  logic [2:0] in_valid, in_ready, q_valid, take;
  logic [255:0] insn;
  logic [31:0] fetch_pc;
  logic [3*256-1:0] q_insn;
  logic [3*32-1:0] q_pc;
  logic [2:0] visible;
  assign visible = halted ? 3'b0 : q_valid;
  genvar e;
  generate
    for (e = 0; e < 3; e = e + 1) begin : queues
      vdla_fifo #(.WIDTH(288), .DEPTH(QUEUE)) queue (
          .clk(clk), .reset(core_reset), .in_valid(in_valid[e]), .in_ready(in_ready[e]), .in_data({fetch_pc, insn}),
          .out_valid(q_valid[e]), .out_ready(take[e]), .out_data({q_pc[e*32+:32], q_insn[e*256+:256]}));
    end
  endgenerate

  logic [3:0] push, pop, some, overflow;
  assign pop = {take[1] && q_insn[256+9], take[2] && q_insn[512+8], take[0] && q_insn[9], take[1] && q_insn[256+8]};
  vdla_tokens tokens (.clk(clk), .reset(core_reset | start), .push(push), .pop(pop), .some(some), .overflow(overflow));

  // Fetch.
  logic f_ar_valid, f_ar_ready, fetch_done, fetch_fault, engines_idle;
  logic [63:0] f_ar_address;
  logic [7:0] f_ar_beats;
  logic [3:0] fetch_code;
  logic [31:0] finish_marker;
  logic load_busy, compute_busy, store_busy;
  assign engines_idle = q_valid == 0 && !load_busy && !compute_busy && !store_busy && push == 0;
  vdla_fetch #(.BIN(BIN), .BOUT(BOUT), .BUS(BUS)) fetch (
      .clk(clk), .reset(core_reset), .start(start), .halted(halted), .address(stream), .count(count), .ar_valid(f_ar_valid),
      .ar_ready(f_ar_ready), .ar_address(f_ar_address), .ar_beats(f_ar_beats), .r_valid(r_valid && !r_id), .r_data(r_data),
      .r_error(r_error), .queue_valid(in_valid), .queue_ready(in_ready), .insn(insn), .pc(fetch_pc), .engines_idle(engines_idle),
      .tokens_left(some != 0), .done(fetch_done), .marker(finish_marker), .fault(fetch_fault), .fault_code(fetch_code));

  // Read addresses: fetch goes first, but a request in progress is not withdrawn.
  logic l_ar_valid, l_ar_ready, l_r_ready, locked, locked_fetch, fetch_asks;
  logic [63:0] l_ar_address;
  logic [7:0] l_ar_beats;
  assign fetch_asks = locked ? locked_fetch : f_ar_valid;
  assign ar_valid = fetch_asks ? f_ar_valid : l_ar_valid;
  assign ar_address = fetch_asks ? f_ar_address : l_ar_address;
  assign ar_beats = fetch_asks ? f_ar_beats : l_ar_beats;
  assign ar_id = !fetch_asks;
  assign f_ar_ready = ar_ready && fetch_asks;
  assign l_ar_ready = ar_ready && !fetch_asks;
  assign r_ready = r_id ? l_r_ready : 1'b1;
  always_ff @(posedge clk) begin
    locked <= !core_reset && ar_valid && !ar_ready;
    locked_fetch <= fetch_asks;
  end

  // Engines and memories.
  logic inp_write, wgt_write, acc_load, acc_load_grant, prm_write, load_fault;
  logic [15:0] load_address;
  logic [BIN*8-1:0] inp_wdata, inp_rdata;
  logic [BIN*BOUT*8-1:0] wgt_wdata, wgt_rdata;
  logic [BOUT*32-1:0] acc_ldata, acc_rdata, acc_wdata, acc_sdata;
  logic [BOUT*64-1:0] prm_wdata, prm_rdata;
  logic [3:0] load_code, compute_code, store_code;
  logic [31:0] load_pc, compute_pc, store_pc, push_pc;
  vdla_load #(.BIN(BIN), .BOUT(BOUT), .BUS(BUS), .LOG_INP(LOG_INP), .LOG_WGT(LOG_WGT), .LOG_ACC(LOG_ACC), .LOG_PRM(LOG_PRM)) load (
      .clk(clk), .reset(core_reset), .q_valid(visible[0]), .q_take(take[0]), .q_insn(q_insn[255:0]), .q_pc(q_pc[31:0]),
      .next_some(some[1]), .push_next(push[0]), .bases(bases), .ar_valid(l_ar_valid), .ar_ready(l_ar_ready), .ar_address(l_ar_address),
      .ar_beats(l_ar_beats), .r_valid(r_valid && r_id), .r_ready(l_r_ready), .r_data(r_data), .r_error(r_error), .inp_write(inp_write),
      .wgt_write(wgt_write), .acc_write(acc_load), .acc_grant(acc_load_grant), .prm_write(prm_write), .write_address(load_address),
      .inp_data(inp_wdata), .wgt_data(wgt_wdata), .acc_data(acc_ldata), .prm_data(prm_wdata), .busy(load_busy), .fault(load_fault),
      .fault_code(load_code), .fault_pc(load_pc));

  logic inp_read, wgt_read, acc_read, acc_write, compute_fault, gemm_step, alu_step;
  logic [LOG_INP-1:0] inp_raddr;
  logic [LOG_WGT-1:0] wgt_raddr;
  logic [LOG_ACC-1:0] acc_raddr, acc_waddr, acc_saddr;
  vdla_compute #(.BIN(BIN), .BOUT(BOUT), .LOG_INP(LOG_INP), .LOG_WGT(LOG_WGT), .LOG_ACC(LOG_ACC)) compute (
      .clk(clk), .reset(core_reset), .q_valid(visible[1]), .q_take(take[1]), .q_insn(q_insn[511:256]), .q_pc(q_pc[63:32]),
      .prev_some(some[0]), .next_some(some[3]), .push_prev(push[1]), .push_next(push[2]), .inp_read(inp_read), .inp_address(inp_raddr),
      .inp_data(inp_rdata), .wgt_read(wgt_read), .wgt_address(wgt_raddr), .wgt_data(wgt_rdata), .acc_read(acc_read),
      .acc_read_address(acc_raddr), .acc_read_data(acc_rdata), .acc_write(acc_write), .acc_write_address(acc_waddr),
      .acc_write_data(acc_wdata), .busy(compute_busy), .gemm_step(gemm_step), .alu_step(alu_step), .fault(compute_fault),
      .fault_code(compute_code), .fault_pc(compute_pc), .push_pc(push_pc));

  logic acc_store, acc_store_grant, prm_read, store_fault;
  logic [LOG_PRM-1:0] prm_raddr;
  vdla_store #(.BOUT(BOUT), .BUS(BUS), .LANES(LANES), .LOG_ACC(LOG_ACC), .LOG_PRM(LOG_PRM)) store (
      .clk(clk), .reset(core_reset), .q_valid(visible[2]), .q_take(take[2]), .q_insn(q_insn[767:512]), .q_pc(q_pc[95:64]),
      .prev_some(some[2]), .push_prev(push[3]), .bases(bases), .acc_read(acc_store), .acc_grant(acc_store_grant), .acc_address(acc_saddr),
      .acc_data(acc_sdata), .prm_read(prm_read), .prm_address(prm_raddr), .prm_data(prm_rdata), .aw_valid(aw_valid), .aw_ready(aw_ready),
      .aw_address(aw_address), .aw_beats(aw_beats), .w_valid(w_valid), .w_ready(w_ready), .w_data(w_data), .w_last(w_last),
      .b_valid(b_valid), .b_error(b_error), .busy(store_busy), .fault(store_fault), .fault_code(store_code), .fault_pc(store_pc));

  vdla_ram #(.WIDTH(BIN*8), .LOG_DEPTH(LOG_INP)) inp (
      .clk(clk), .write(inp_write), .write_address(load_address[LOG_INP-1:0]), .write_data(inp_wdata), .read(inp_read),
      .read_address(inp_raddr), .read_data(inp_rdata));
  vdla_ram #(.WIDTH(BIN*BOUT*8), .LOG_DEPTH(LOG_WGT)) wgt (
      .clk(clk), .write(wgt_write), .write_address(load_address[LOG_WGT-1:0]), .write_data(wgt_wdata), .read(wgt_read),
      .read_address(wgt_raddr), .read_data(wgt_rdata));
  vdla_ram #(.WIDTH(BOUT*64), .LOG_DEPTH(LOG_PRM)) prm (
      .clk(clk), .write(prm_write), .write_address(load_address[LOG_PRM-1:0]), .write_data(prm_wdata), .read(prm_read),
      .read_address(prm_raddr), .read_data(prm_rdata));
  vdla_acc #(.WIDTH(BOUT*32), .LOG_ACC(LOG_ACC)) acc (
      .clk(clk), .compute_read(acc_read), .compute_read_address(acc_raddr), .compute_read_data(acc_rdata), .compute_write(acc_write),
      .compute_write_address(acc_waddr), .compute_write_data(acc_wdata), .load_write(acc_load), .load_grant(acc_load_grant),
      .load_write_address(load_address[LOG_ACC-1:0]), .load_write_data(acc_ldata), .store_read(acc_store), .store_grant(acc_store_grant),
      .store_read_address(acc_saddr), .store_read_data(acc_sdata));

  // Faults: the first one stops everything. No progress for `watchdog` cycles is a deadlock,
  // charged to the oldest waiting instruction.
  logic [31:0] quiet, oldest;
  logic progress;
  assign progress = (ar_valid && ar_ready) || r_valid || (aw_valid && aw_ready) || (w_valid && w_ready) || b_valid || take != 0
                    || gemm_step || alu_step || in_valid != 0 && (in_valid & in_ready) != 0;
  always_comb begin
    oldest = fetch_pc;
    for (int k = 0; k < 3; k = k + 1) if (q_valid[k] && q_pc[k*32+:32] < oldest) oldest = q_pc[k*32+:32];
  end
  always_ff @(posedge clk) begin
    if (core_reset) begin
      error <= 0;
      error_pc <= 0;
      quiet <= 0;
      running <= 0;
      is_done <= 0;
    end else begin
      quiet <= progress || start ? 0 : quiet + 1;
      if (start) {running, is_done} <= 2'b10;
      if (running && !halted) begin
        if (load_fault) {error, error_pc} <= {load_code, load_pc};
        else if (compute_fault) {error, error_pc} <= {compute_code, compute_pc};
        else if (store_fault) {error, error_pc} <= {store_code, store_pc};
        else if (fetch_fault) {error, error_pc} <= {fetch_code, fetch_pc};
        else if (overflow != 0) {error, error_pc} <= {OVERFLOW, overflow[0] ? load_pc : overflow[3] ? store_pc : push_pc};
        else if (watchdog != 0 && quiet >= watchdog) {error, error_pc} <= {DEADLOCK, oldest};
        else if (fetch_done) {running, is_done, marker} <= {2'b01, finish_marker};
      end
    end
  end

  // Counters: cycles, gemm, alu, load busy, store busy, compute waits for load, for store, load
  // waits, read beats, write beats, instructions.
  logic [11*32-1:0] counters;
  logic [10:0] events;
  logic compute_waits;
  assign compute_waits = q_valid[1] && !compute_busy;
  assign events = {take != 0, w_valid && w_ready, r_valid && r_ready && r_id, q_valid[0] && q_insn[9] && !some[1],
                   compute_waits && q_insn[256+9] && !some[3], compute_waits && q_insn[256+8] && !some[0], store_busy, load_busy, alu_step,
                   gemm_step, 1'b1};
  always_ff @(posedge clk)
    if (core_reset | start) counters <= 0;
    else if (running && !halted)
      for (int k = 0; k < 11; k = k + 1)
        counters[k*32+:32] <= counters[k*32+:32] + (k == 10 ? {30'b0, {1'b0, take[0]} + {1'b0, take[1]} + {1'b0, take[2]}} : {31'b0, events[k]});

  localparam [31:0] SHAPE = {8'(LANES), 8'(BUS), 8'($clog2(BOUT)), 8'($clog2(BIN))};
  localparam [31:0] DEPTHS = {8'(LOG_PRM), 8'(LOG_ACC), 8'(LOG_WGT), 8'(LOG_INP)};
  always_ff @(posedge clk) begin
    start <= csr_write && csr_address == 8'h10 && csr_wdata[0];
    clear <= csr_write && csr_address == 8'h10 && csr_wdata[1];
    if (csr_write)
      case (csr_address)
        8'h20: stream[31:0] <= csr_wdata;
        8'h24: stream[63:32] <= csr_wdata;
        8'h28: count <= csr_wdata;
        8'h30: watchdog <= csr_wdata;
        default: if (csr_address[7:6] == 2'b01) bases[csr_address[5:2]*32+:32] <= csr_wdata;
      endcase
  end
  always_comb begin
    csr_rdata = 0;
    case (csr_address)
      8'h00: csr_rdata = 32'h314c4456;  // "VDL1"
      8'h04: csr_rdata = 1;
      8'h08: csr_rdata = SHAPE;
      8'h0c: csr_rdata = DEPTHS;
      8'h14: csr_rdata = {29'b0, halted, is_done, !running};
      8'h18: csr_rdata = {28'b0, error};
      8'h1c: csr_rdata = error_pc;
      8'h34: csr_rdata = marker;
      8'h38: csr_rdata = QUEUE;
      default: for (int k = 0; k < 11; k = k + 1) if (csr_address == 8'h80 + 8'(4 * k)) csr_rdata = counters[k*32+:32];
    endcase
  end
endmodule
