// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.check;

import java.util.regex.Pattern;

/**
 * Classifies a tensor by its name, with the naming habits of published checkpoints: transformers,
 * compressed-tensors, GPTQ, AWQ, AQLM, HQQ, bitsandbytes, ModelOpt and Transformer Engine.
 * Transformer Engine stores a record of its own in {@code _extra_state}.
 */
public enum Purpose {
  /** Holds scales or zero points of another tensor, or values from which they are computed. */
  SCALE(
      "(?:.*_)?(?:[qw]?scales?(?:[_0-9].*)?|scaling(?:_factors?)?|zero_points?|q?zeros?|g_idx"
          + "|a(?:bs)?max(?:_.*)?|scb|quant_map|bitsandbytes__.*|weight_shape|weight_format"
          + "|biases|codebooks)"),
  /**
   * Holds several weights, one after another along a dimension. Ranks cut each weight separately.
   */
  FUSED(
      "(?:qkv|kv|gate_up|in)_proj(?:_qkvz?|_ba|_weight|_bias)?|(?:(?:to|linear|fused)_)?q?kv|wqkv"
          + "|query_key_value|w_pack|c_attn|w13(?:_weight|_bias)?|gate_up|dense_h_to_4h"),
  /** Must stay whole: HQQ's integers, which pack distant rows, and the bytes of a record. */
  WHOLE("(?-i:W_q)|_extra_state[0-9]*"),
  /** Stores few values that differ little, which a shorter dtype would make equal. */
  PRECISE("e_score_correction_bias|a_log|dt_bias|(?:.*_)?inv_freq|(?:.*_)?(?:router|gate)[._](?:expert_)?bias"),
  /** Serves any other purpose. */
  OTHER(".*");

  /** Scales of activations, or of a cache of keys and values. */
  private static final Pattern OF_ACTIVATIONS =
      Pattern.compile(
          "(?:[qkv]|kv|input|output|act(?:ivation)?|prob|attn_output|pre_quant)_scales?", Pattern.CASE_INSENSITIVE);

  /**
   * Scales of a weight's inputs. They lie along the last dimension, and each rank has all of them.
   */
  private static final Pattern OF_INPUTS = Pattern.compile("(?:pre_quant|input|act).*");

  /** Ends of names that identify the part of a module and not its purpose. */
  private static final Pattern PART = Pattern.compile("(?<=.)\\.(?:weight|bias|qweight|weight_packed)$");

  private final Pattern usual;

  Purpose(String usual) {
    this.usual = Pattern.compile(usual, Pattern.CASE_INSENSITIVE | Pattern.DOTALL);
  }

  /** Returns the purpose of a tensor of that name. */
  public static Purpose of(String name) {
    String own = last(name);
    String module = last(PART.matcher(name).replaceFirst(""));
    // A name such as gate.expert_bias has its module before the last dot.
    String inModule = module.equals(own) ? last(name.substring(0, Math.max(0, name.lastIndexOf('.')))) : module;
    for (Purpose purpose : values()) {
      boolean is =
          switch (purpose) {
            case FUSED -> purpose.usual.matcher(module).matches();
            case PRECISE ->
                purpose.usual.matcher(own).matches()
                    || purpose.usual.matcher(inModule + "." + own).matches();
            default -> purpose.usual.matcher(own).matches();
          };
      if (is) {
        return purpose;
      }
    }
    throw new IllegalStateException(name);
  }

  /** Returns whether a tensor of that name holds scales of activations. */
  static boolean isOfActivations(String name) {
    return OF_ACTIVATIONS.matcher(last(name)).matches();
  }

  /** Returns whether a tensor of that name holds scales of a weight's inputs. */
  static boolean isOfInputs(String name) {
    return OF_INPUTS.matcher(last(name)).matches();
  }

  /** Returns the text behind the last dot. */
  static String last(String name) {
    return name.substring(name.lastIndexOf('.') + 1);
  }
}
