"""Networks on sound: of any length, with states, with lengths of their own."""
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from export import by_torch, export


class Recognizer(nn.Module):
    """Convolutions and packed LSTMs: each row has a length."""

    def __init__(self):
        super().__init__()
        self.maps = nn.Conv1d(40, 32, 5, 2, 2)
        self.rows = nn.LSTM(32, 24, 2, bidirectional=True, batch_first=True)
        self.out = nn.Linear(48, 29)

    def forward(self, x, lengths):
        y = F.relu(self.maps(x.transpose(1, 2))).transpose(1, 2)
        packed = pack_padded_sequence(y, (lengths + 1) // 2, batch_first=True, enforce_sorted=True)
        return self.out(pad_packed_sequence(self.rows(packed)[0], batch_first=True)[0]).log_softmax(-1)


@export("torch, legacy")
def recognizer(path):
    def make(n=2, t=40):
        return {"x": torch.randn(n, t, 40), "lengths": torch.tensor([t, t - 6, t - 9, t - 12][:n])}
    return by_torch(path, Recognizer(), make, {"x": {0: "n", 1: "t"}, "lengths": {0: "n"}}, [{}, {"n": 3, "t": 62}])


class Activity(nn.Module):
    """Voice activity: a window's spectrum by a convolution, and a state that the caller keeps."""

    def __init__(self):
        super().__init__()
        self.spectrum, self.maps = nn.Conv1d(1, 130, 128, 64, bias=False), nn.Conv1d(65, 32, 3, 1, 1)
        self.cell, self.out = nn.LSTM(32, 32), nn.Conv1d(32, 1, 1)

    def forward(self, x, h, c):
        y = self.spectrum(F.pad(x, [32, 32], mode="reflect").unsqueeze(1))
        y = F.relu(self.maps(torch.sqrt(y[:, :65] ** 2 + y[:, 65:] ** 2)))
        y, (h, c) = self.cell(y.permute(2, 0, 1), (h, c))
        return self.out(F.relu(y.permute(1, 2, 0))).sigmoid().mean(2), h, c


@export("torch, legacy")
def voice_activity(path):
    def make(n=1, t=512):
        return {"x": torch.randn(n, t), "h": torch.zeros(1, n, 32), "c": torch.zeros(1, n, 32)}
    return by_torch(path, Activity(), make, {"x": {0: "n", 1: "t"}, "h": {1: "n"}, "c": {1: "n"}}, [{}, {"n": 4, "t": 700}], outputs=3)


class Conformer(nn.Module):
    """One block, with relative places and a mask of lengths."""

    def __init__(self, d=32):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(d) for _ in range(4)])
        self.attention = nn.MultiheadAttention(d, 4, batch_first=True)
        self.first, self.depthwise, self.last = nn.Conv1d(d, 2 * d, 1), nn.Conv1d(d, d, 15, padding=7, groups=d), nn.Conv1d(d, d, 1)
        self.batch = nn.BatchNorm1d(d)
        self.feed = nn.Sequential(nn.Linear(d, 4 * d), nn.SiLU(), nn.Linear(4 * d, d))

    def forward(self, x, lengths):
        gone = torch.arange(x.shape[1]) >= lengths.unsqueeze(1)
        x = x + 0.5 * self.feed(self.norms[0](x))
        y = self.norms[1](x)
        x = x + self.attention(y, y, y, key_padding_mask=gone, need_weights=False)[0]
        y = F.glu(self.first(self.norms[2](x).transpose(1, 2)), 1).masked_fill(gone.unsqueeze(1), 0)
        x = x + self.last(F.silu(self.batch(self.depthwise(y)))).transpose(1, 2)
        return self.norms[3](x)


def with_lengths(n=2, t=50):
    return {"x": torch.randn(n, t, 32), "lengths": torch.tensor([t, t - 5, t - 11][:n])}


@export("torch, dynamo")
def conformer(path):
    return by_torch(path, Conformer(), with_lengths, {"x": {0: "n", 1: "t"}, "lengths": {0: "n"}}, [{}, {"n": 3, "t": 33}], dynamo=True)


class Speaker(nn.Module):
    """Who speaks: convolutions over time, then mean and deviation."""

    def __init__(self):
        super().__init__()
        self.maps = nn.Sequential(nn.Conv1d(24, 32, 5), nn.ReLU(), nn.BatchNorm1d(32), nn.Conv1d(32, 32, 3, dilation=2), nn.ReLU(), nn.Conv1d(32, 48, 3, dilation=3))
        self.out = nn.Linear(96, 16)

    def forward(self, x):
        y = self.maps(x)
        return F.normalize(self.out(torch.cat([y.mean(2), y.std(2)], 1)))


@export("torch, legacy")
def speaker(path):
    return by_torch(path, Speaker(), lambda n=1, t=60: {"x": torch.randn(n, 24, t)}, {"x": {0: "n", 2: "t"}}, [{}, {"n": 3, "t": 91}])


class Spectrum(nn.Module):
    """A spectrogram in the model itself, and a GRU."""

    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(64))
        self.rows, self.out = nn.GRU(33, 20, batch_first=True), nn.Linear(20, 5)

    def forward(self, x):
        y = torch.stft(x, 64, 32, window=self.window, return_complex=False, center=False)
        y = (y.pow(2).sum(-1) + 1e-6).log().transpose(1, 2)
        return self.out(self.rows(y)[0][:, -1])


@export("torch, legacy")
def keyword(path):
    return by_torch(path, Spectrum(), lambda n=1, t=800: {"x": torch.randn(n, t)}, {"x": {0: "n", 1: "t"}}, [{}, {"n": 2, "t": 1011}])


@export("Transformers, legacy", tolerance=5e-4)
def whisper_encoder(path):
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.network = WhisperEncoder(WhisperConfig(d_model=64, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=128, max_source_positions=100, attn_implementation="eager"))

        def forward(self, x):
            return self.network(x).last_hidden_state
    return by_torch(path, Encoder(), lambda n=1: {"x": torch.randn(n, 80, 200)}, {"x": {0: "n"}}, [{}, {"n": 2}])


@export("Transformers, dynamo", tolerance=5e-4)
def wav2vec(path):
    from transformers import Wav2Vec2Config, Wav2Vec2ForCTC

    class Letters(nn.Module):
        def __init__(self):
            super().__init__()
            self.network = Wav2Vec2ForCTC(Wav2Vec2Config(hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96, conv_dim=(32, 32, 32), conv_kernel=(10, 3, 3),
                                                         conv_stride=(5, 2, 2), num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4, vocab_size=32, attn_implementation="eager"))

        def forward(self, x):
            return self.network(x).logits
    return by_torch(path, Letters(), lambda n=2, t=1600: {"x": torch.randn(n, t)}, {"x": {0: "n", 1: "t"}}, [{}, {"n": 3, "t": 2000}], dynamo=True)
