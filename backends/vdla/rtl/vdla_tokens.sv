// The four token counters. Links: 0 load to compute, 1 compute to load, 2 compute to store, 3 store to compute.
module vdla_tokens (
    input  logic       clk,
    input  logic       reset,
    input  logic [3:0] push,
    input  logic [3:0] pop,
    output logic [3:0] some,
    output logic [3:0] overflow
);
  logic [31:0] count;
  always_comb
    for (int l = 0; l < 4; l = l + 1) begin
      some[l] = count[l*8+:8] != 0;
      overflow[l] = push[l] && !pop[l] && count[l*8+:8] == 8'hff;
    end
  always_ff @(posedge clk)
    if (reset) count <= 0;
    else
      for (int l = 0; l < 4; l = l + 1)
        count[l*8+:8] <= count[l*8+:8] + {7'b0, push[l] && !overflow[l]} - {7'b0, pop[l]};
endmodule
