// Requantizes one lane from int32 to int8 in three stages, as backends/vdla/requant.cpp does: a
// product within half a unit of a float's last place of a tie is a tie.
module vdla_requant (
    input  logic        clk,
    input  logic        bypass,  // only add the zero point and clamp
    input  logic [31:0] acc,
    input  logic [63:0] param,   // bias, multiplier, shift, from the low bits up
    input  logic [7:0]  zero_point,
    input  logic [7:0]  low,
    input  logic [7:0]  high,
    output logic [7:0]  out
);
  logic [31:0] sum, size, size_q;
  logic [23:0] multiplier_q;
  logic [5:0] shift_q, shift_qq;
  logic negative_q, negative_qq;
  logic [55:0] product;
  assign sum = bypass ? acc : acc + param[31:0];
  assign size = sum[31] ? -sum : sum;
  always_ff @(posedge clk) begin
    size_q <= size;
    negative_q <= sum[31];
    multiplier_q <= bypass ? 24'd1 : param[55:32];
    shift_q <= param[61:56];
    product <= size_q * multiplier_q;
    negative_qq <= negative_q;
    shift_qq <= shift_q;
  end

  logic [63:0] half, fraction, window, distance;
  logic [55:0] whole, rounded;
  logic [10:0] value, shifted;
  always_comb begin
    half = shift_qq == 0 ? 64'd0 : 64'd1 << (shift_qq - 1'b1);
    fraction = {8'b0, product} & ((64'd1 << shift_qq) - 1'b1);
    whole = product >> shift_qq;
    window = 0;
    for (int k = 24; k < 56; k = k + 1) if (product[k]) window = 64'd1 << (k - 24);
    distance = fraction > half ? fraction - half : half - fraction;
    if (bypass) rounded = product;
    else rounded = whole + {55'b0, distance <= window ? whole[0] : fraction > half};
    value = rounded > 56'd511 ? 11'd511 : rounded[10:0];
    shifted = {{3{zero_point[7]}}, zero_point} + (negative_qq ? -value : value);
  end
  always_ff @(posedge clk)
    if ($signed(shifted) < $signed({{3{low[7]}}, low})) out <= low;
    else if ($signed(shifted) > $signed({{3{high[7]}}, high})) out <= high;
    else out <= shifted[7:0];
endmodule
